"""A run from the recipe to the scores."""
