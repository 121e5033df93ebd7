"""centres.py FOLDER [--hold a2,b1]: write FOLDER/centres.npz, the mean vectors of training texts under both prefixes.

FOLDER holds reader.int8.onnx and tokenizer.json. Questions are centred apart from what they are to find, since the
encoder was trained to put "query: " and "passage: " before texts, and the two lie in different places. --hold leaves
the authors out that the reader is measured on.
"""

import argparse
import os
import random

import numpy as np
import onnxruntime
from model import load_tokenizer
from train import files, lines

MOST = 2_000  # texts of each kind


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder")
    p.add_argument("--hold", default="")
    o = p.parse_args()
    folder, hold = o.folder, set(o.hold.split(","))
    tokenizer = load_tokenizer(os.path.join(folder, "reader.int8.onnx"))
    session = onnxruntime.InferenceSession(os.path.join(folder, "reader.int8.onnx"))
    sentences = [s for row in lines(files("t1", hold=hold)) for s in row["sentences"]]
    questions = [s["t"] for s in sentences if s["t"].rstrip().endswith("?")]
    told = [s["t"] for s in sentences if s["y"] != "none"]
    told += [b["t"] for row in lines(files("t3", hold=hold)) for b in row["beliefs"]]
    centres = {}
    for name, texts in (("query", questions), ("passage", told)):
        texts = sorted(set(texts))
        chosen = random.Random(1).sample(texts, min(MOST, len(texts)))
        rows = [tokenizer.encode(f"{name}: {text}").ids[:96] for text in chosen]
        vectors = [
            session.run(["vector"], {"input_ids": np.array([row]), "attention_mask": np.ones((1, len(row)), int)})[0][0]
            for row in rows
        ]
        centres[name] = np.mean(vectors, axis=0).astype(np.float32)
        print(f"{name}: {len(chosen)} texts, length of the mean {np.linalg.norm(centres[name]):.3f}")
    np.savez(os.path.join(folder, "centres.npz"), **centres)


if __name__ == "__main__":
    main()
