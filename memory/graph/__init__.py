"""The graph of memories: entities, edges and boxes, made in the background."""
