"""The line as a few short functions: every way to run kfleet is a prefix of it.

Two files, because what needs no cluster should not wait for the import of what does.
"""
