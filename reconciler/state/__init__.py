"""What an object is and would become: managedFields, the ApplySet, tracking metadata, the dry run."""
