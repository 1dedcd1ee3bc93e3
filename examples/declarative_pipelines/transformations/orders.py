"""A topic as a streaming table, its totals as a materialized view, large orders back into a topic.

format("penstock") needs no registration: installing penstock is enough for Spark to find it.
"""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

spark = SparkSession.active()
bootstrap = spark.conf.get("orders.bootstrap", "localhost:9092")


@dp.table
def orders() -> DataFrame:
    """Every order, once: the pipeline's checkpoint knows how far the topic was read."""
    return (
        spark.readStream.format("penstock")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", "orders")
        .option("startingOffsets", "earliest")
        .option("queryName", "declarative-orders")
        .option("value.format", "json")
        .option("value.schema", "id BIGINT, country STRING, amount DOUBLE")
        .load()
    )


@dp.materialized_view
def totals() -> DataFrame:
    """How much each country ordered, computed anew with every run."""
    return spark.read.table("orders").groupBy("country").agg(f.sum("amount").alias("total"))


dp.create_sink("large_orders", "penstock", {"kafka.bootstrap.servers": bootstrap, "topic": "large-orders"})


@dp.append_flow(target="large_orders")
def large() -> DataFrame:
    """Large orders as JSON, keyed by country, for whoever listens."""
    found = spark.readStream.table("orders").where("amount >= 1000")
    return found.select(f.col("country").alias("key"), f.to_json(f.struct("id", "country", "amount")).alias("value"))
