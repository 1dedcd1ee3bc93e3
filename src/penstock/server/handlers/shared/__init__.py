"""What several handlers share. It knows no API of its own."""
