"""Data directories that earlier releases left behind. Every later release must open them and show the same."""
