"""Plugins that let the tests beside them record: loaded by name, they say by being there what is to be written."""
