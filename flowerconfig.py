"""Flower reads this file from the folder it is started in: whoever starts it, its pages ask for a name and password."""

from beliefsite.kept_secrets import flower_login

basic_auth = [flower_login()]
