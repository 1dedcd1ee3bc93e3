"""Values as columns: json, csv, text, regex, avro, raw; a schema given or inferred; what cannot be decoded.

    options.py       what the user chose (pure)              ddl.py           Spark's type language, without a JVM
    decoding.py      the recipe that travels to workers      schema.py        the columns, as Spark and as Arrow types
    decoded.py       what a decoder is and answers           infer.py         a schema from a sample, with a report
    json.py csv.py text.py regex.py avro.py                  dead_letters.py  fail, drop, to a topic, to a table

Below json.py: json_truth.py reads one document and says what is wrong with it; json_shape.py reads many at once. What
the second takes the first takes too, with the same meaning; whatever the second refuses is asked of the first. Below
csv.py and regex.py: text_columns.py, texts as typed columns. Below ddl.py: ddl_grammar.py, which needs no Spark. Below
all: times.py and decimals.py, values as Spark spells them. Below dead_letters.py: letters.py, and letter_table.py,
which keeps each letter once, whoever writes.

A decoder takes an Arrow array of binary values and gives columns for the rows that are good and a reason for each that
is not; good + bad = all, in order. A null value (a tombstone) is a row of nulls. Decoders know Arrow types only, and
are built in the worker from a recipe that pickles. May import: pyarrow; msgspec, fastavro and deltalake where they are
used; pyspark where columns are still Spark's (ddl.py, schema.py, avro_schema.py, infer.py); `penstock.spark.dialogue`
and `client` for letters to a topic; of the lake, how files are reached, for letters to a table.

Meaning is that of Spark's from_json and CSV reader in PERMISSIVE mode, except that what Spark would null out silently
is a bad record here, with an error that names the field, the type that was wanted and what was found.

Read `decoding.py` first, then `json.py`.
"""
