# natvis.py DIRECTORY
# keyfold.natvis is well-formed, and the members and classes that it names are in the headers. No debugger reads it here.
import pathlib
import re
import sys
import xml.etree.ElementTree

root = pathlib.Path(sys.argv[1])
headers = "\n".join(path.read_text() for path in root.glob("include/keyfold/**/*.hpp"))
known = set(re.findall(r"\w+", headers)) | {"_Mypair", "_Myval2", "_Ptr", "_Has_value", "at", "end"}

unknown = set()
for element in xml.etree.ElementTree.parse(root / "keyfold.natvis").iter():
    kind = element.tag.rpartition("}")[2]
    expressions = [element.get("Condition", ""), element.get("InitialValue", "")]
    if kind == "DisplayString":
        expressions += re.findall(r"\{([^{}]+)\}", element.text)
    elif kind in ("Item", "ExpandedItem", "Exec"):
        expressions.append(element.text)
    elif kind == "Type":
        expressions.append(element.get("Name"))
    unknown |= set(re.findall(r"[A-Za-z_]\w*", " ".join(expressions))) - known
if unknown:
    sys.exit("keyfold.natvis names what no header has: " + ", ".join(sorted(unknown)))
