"""Whose is what: the fields of an object that a manager owns, and the objects of a cluster that are the fleet's."""
