"""A catalogue of texts with labels in, ranked names out: train, search, save, load."""

import tempfile
from pathlib import Path

import beamwood as bw

texts = [
    "red wool socks for winter",
    "thick wool socks, grey",
    "cotton t-shirt with short sleeves",
    "blue cotton shirt, long sleeves",
    "waterproof hiking boots",
    "leather boots for winter",
]
labels = [["socks", "wool"], ["socks", "wool"], ["shirts", "cotton"], ["shirts", "cotton"], ["boots"], ["boots"]]

model = bw.train_text(texts, labels, names={"socks": "Socks & stockings"}, preset="fast", progress=False)
for hit in model.search("warm wool socks", k=3):
    print(f"{hit.score:.2f}  {hit.key:8} {hit.name}")

with tempfile.TemporaryDirectory() as folder:
    model.save(Path(folder) / "catalogue.bw")
    again = bw.load(Path(folder) / "catalogue.bw")
    assert again.search("boots", k=1) == model.search("boots", k=1)
print("known words:", model.search("boots").known_terms, "- unknown:", model.search("zeppelin").known_terms)
