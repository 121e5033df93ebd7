"""What goes into calls and comes back, as JSON has it. Written from the API's schema: change that."""

# ruff: noqa: F403
from engram_client.types.closed_sets import *
from engram_client.types.curated import *
from engram_client.types.read import *
from engram_client.types.recalled import *
from engram_client.types.stored import *
from engram_client.types.workspace import *
