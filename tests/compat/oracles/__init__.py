"""Apache Kafka's own classes as judges of pure rooms: one JVM a class, random cases as JSON lines, equal or fail."""
