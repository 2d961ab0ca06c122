"""Apply verified changes to the tree, all or none; undo and repair them; hold the tree's lock."""
