"""Records go out: sessions, what is readable now, and the fetches that wait for more."""
