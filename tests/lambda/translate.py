"""Prints template.yaml as the CloudFormation that SAM makes of it. Run by .venv-sam's Python.

Managed policies are looked up in AWS by SAM; the template has none, so the loader knows none.
"""

import json
import sys
from pathlib import Path

from samcli.yamlhelper import yaml_parse
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator


def main(path: str) -> None:
    template = yaml_parse(Path(path).read_text())
    for resource in template["Resources"].values():
        for place in ("CodeUri", "ContentUri"):
            if place in resource.get("Properties", {}):
                resource["Properties"][place] = "s3://bucket/key"  # as `sam package` does
    template["Globals"]["Function"]["CodeUri"] = "s3://bucket/key"
    translated = Translator({}, Parser()).translate(template, {})
    json.dump(translated, sys.stdout)


main(sys.argv[1])
