"""What Flower reads when it starts: its pages ask for a name and password."""

from beliefsite.environment import flower_login

basic_auth = [flower_login()]
