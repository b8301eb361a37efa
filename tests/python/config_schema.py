"""Holds configurations to the JSON schema: reads {"schema": …, "texts": […]} and prints what is wrong with each text, as a list."""

import json
import sys
import tomllib

import jsonschema

asked = json.load(sys.stdin)
validator = jsonschema.Draft7Validator(asked["schema"])
jsonschema.Draft7Validator.check_schema(asked["schema"])


def faults(text):
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return [f"no TOML: {error}"]
    # Moments are text to editors.
    document = json.loads(json.dumps(document, default=str))
    found = validator.iter_errors(document)
    return [f"{'.'.join(map(str, error.absolute_path))}: {error.message}"[:300] for error in found]


print(json.dumps([faults(text) for text in asked["texts"]]))
