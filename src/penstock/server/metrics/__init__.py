"""What a node tells of itself: numbers read off at scrape, and the port where they are asked for. `page.py` first."""
