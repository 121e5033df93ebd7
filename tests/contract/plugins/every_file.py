"""What the outside sees is recorded, and the files that later releases must read are written anew."""
