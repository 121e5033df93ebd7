"""The small model that ships with the project and reads in place of a language model: four answers from one encoder.

A multilingual encoder (multilingual-e5-small, 12 layers, 384 dimensions, 8-bit weights) with heads for the worth of a
sentence, the relation of a later sentence to a belief and, in files that have it, the category. It runs on the CPU at
some 150 pairs a second and core.

Each pair runs by itself, and its answer is kept: batches of 16 save a sixth of the time on one thread, and the same
pairs are asked again and again.
"""

import hashlib
from collections.abc import Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memory.domain.taxonomy import Category
from memory.llm.onnx_models import ModelUnavailable
from memory.text.words import words_key

TextPair = tuple[str, str]
FOLDER = Path(__file__).parent / "reader_model"
NAME = "engram-reader-1"
WEIGHTS, TOKENIZER, CENTRES = "reader.int8.onnx", "tokenizer.json", "centres.npz"
VECTOR_DIMENSIONS = 384

# The places of the classes in `worth` and `relation`.
NONE, EVENT, LASTING, CHANGE = range(4)
IRRELEVANT, SUPPORTS, CONTRADICTS, PARTIAL = range(4)

SAME_STATEMENT = 0.6  # SUPPORTS both ways: of 150 pairs that differ none reaches it, two do at .5; few paraphrases do

_CATEGORIES = (
    Category.FACT,
    Category.PREFERENCE,
    Category.CORRECTION,
    Category.ENTITY,
    Category.DECISION,
    Category.RELATIONSHIP,
    Category.PRINCIPLE,
    Category.COMMITMENT,
    Category.SKILL,
)
_PAIR_TOKENS = 140  # of a pair with its four marks, as in training; what is longer is cut at the longer side
_VECTOR_TOKENS = 260  # of a text whose vector is asked for; in training 96, beyond which the base knows its way
_LONGEST_TEXT = 2_000  # characters that are tokenised: far more than the tokens that are read
_CACHED = 20_000  # texts and pairs; beliefs are compared again and again (31 MB of vectors)
_START, _END = 0, 2  # ids of <s> and </s>


class Answers(NamedTuple):
    """The probabilities that the heads give for one pair; no categories where the file has no such head."""

    worth: NDArray[np.float32]
    relation: NDArray[np.float32]
    category: NDArray[np.float32] | None


class Reader:
    """A reader in a folder, loaded when it is first asked."""

    def __init__(self, *, folder: Path = FOLDER) -> None:
        self._folder = folder
        self._answers = lru_cache(maxsize=_CACHED)(self._run_pair)
        self._vector = lru_cache(maxsize=_CACHED)(self._run_text)

    @cached_property
    def name(self) -> str:
        """Return the reader's name, which changes with its files: "engram-reader-1@3f2a…"."""
        return f"{NAME}@{self.version}"

    @cached_property
    def version(self) -> str:
        """Return the first 12 hex digits of the SHA-256 of all its files: its answers hang on each.

        Raise ModelUnavailable where one cannot be read.
        """
        digest = hashlib.sha256()
        for name in (WEIGHTS, TOKENIZER, CENTRES):
            try:
                digest.update((self._folder / name).read_bytes())
            except OSError as error:
                raise ModelUnavailable(f"{self._folder / name} cannot be read: {error}") from error
        return digest.hexdigest()[:12]

    def load(self) -> None:
        """Load the model now, before a fork say; raise ModelUnavailable that names the file."""
        _ = self._session, self._tokenizer, self._centres

    def worth(self, pairs: Sequence[TextPair]) -> NDArray[np.float32]:
        """Return the probabilities (n, 4) of none, event, lasting, change for sentences with their messages."""
        return _rows([self._answers(*pair).worth for pair in pairs], width=4)

    def relation(self, pairs: Sequence[TextPair]) -> NDArray[np.float32]:
        """Return what later sentences say of beliefs: IRRELEVANT, SUPPORTS, CONTRADICTS, PARTIAL (n, 4).

        Both are spoken: "Name: text" (see `spoken`).
        """
        return _rows([self._answers(*pair).relation for pair in pairs], width=4)

    def categories(self, texts: Sequence[str], *, messages: Sequence[str] = ()) -> list[str]:
        """Return the likeliest category of each sentence, "" where the file has no such head.

        A message is what `worth` is given with the sentence, "user: …"; without messages each sentence is its own.
        """
        if "category" not in self._outputs:
            return [""] * len(texts)
        contexts = messages or [f"user: {text}" for text in texts]
        found = [self._answers(text, context).category for text, context in zip(texts, contexts, strict=True)]
        return [str(_CATEGORIES[int(odds.argmax())]) if odds is not None else "" for odds in found]

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors of shape (n, 384), of texts that are compared with each other."""
        return _rows([self.vector(text, is_query=True) for text in texts], width=VECTOR_DIMENSIONS)

    def vector(self, text: str, *, is_query: bool) -> NDArray[np.float32]:
        """Return the unit vector (384) of a text that asks, or of one that is to be found."""
        return self._vector(text, "query: " if is_query else "passage: ")

    def centred_vector(self, text: str, *, is_query: bool) -> NDArray[np.float32]:
        """Return the unit vector (384) of a text, less what the vectors of all texts of its kind have in common.

        All vectors of this encoder lie close together; what parts them is what they mean (Mu and Viswanath 2018,
        All-but-the-Top). The centres are the means over the training texts.
        """
        moved = self.vector(text, is_query=is_query) - self._centres["query" if is_query else "passage"]
        centred: NDArray[np.float32] = moved / max(float(np.linalg.norm(moved)), 1e-9)
        return centred

    def token_offsets(self, text: str) -> list[int]:
        """Return where each token of a text begins."""
        return [start for start, _ in self._tokenizer.encode(text, add_special_tokens=False).offsets]

    def says_the_same(self, a: str, b: str) -> bool:
        """Tell whether two spoken statements say the same: in the same words, or surely each bears out the other."""
        return words_key(a) == words_key(b) or bool(
            (self.relation([(a, b), (b, a)])[:, SUPPORTS] >= SAME_STATEMENT).all()
        )

    def _run_pair(self, a: str, b: str) -> Answers:
        left, right = (self._tokens(text) for text in (a, b))
        left, right = _cut_longer(left, right, room=_PAIR_TOKENS - 4)
        wanted = [name for name in Answers._fields if name in self._outputs]
        logits = self._run(wanted, [_START, *left, _END, _END, *right, _END])
        found = {name: _softmax(row[0]) for name, row in zip(wanted, logits, strict=True)}
        return Answers(worth=found["worth"], relation=found["relation"], category=found.get("category"))

    def _run_text(self, text: str, prefix: str) -> NDArray[np.float32]:
        ids = self._tokenizer.encode(prefix + text.strip()[:_LONGEST_TEXT]).ids[:_VECTOR_TOKENS]
        vector: NDArray[np.float32] = self._run(["vector"], ids)[0][0]
        return vector

    def _run(self, outputs: list[str], ids: Sequence[int]) -> list[NDArray[np.float32]]:
        given = np.array([ids], dtype=np.int64)
        found: list[NDArray[np.float32]] = self._session.run(
            outputs, {"input_ids": given, "attention_mask": np.ones_like(given)}
        )
        return found

    def _tokens(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text[:_LONGEST_TEXT], add_special_tokens=False).ids
        return ids

    @cached_property
    def _outputs(self) -> frozenset[str]:
        return frozenset(node.name for node in self._session.get_outputs())

    @cached_property
    def _session(self) -> Any:
        """Load the weights on one thread: without threads of its own a session survives a fork."""
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        path = self._folder / WEIGHTS
        try:
            session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # the package raises kinds of its own, for a file that is damaged
            raise ModelUnavailable(f"{path} cannot be loaded: {error}") from error
        if missing := {"worth", "relation", "vector"} - {node.name for node in session.get_outputs()}:
            raise ModelUnavailable(f"{path} is no reader: it lacks the outputs {', '.join(sorted(missing))}.")
        return session

    @cached_property
    def _centres(self) -> dict[str, NDArray[np.float32]]:
        path = self._folder / CENTRES
        try:
            with np.load(path) as stored:
                return {name: stored[name] for name in ("query", "passage")}
        except (OSError, KeyError, ValueError) as error:
            raise ModelUnavailable(f"{path} cannot be read: {error}") from error

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        path = self._folder / TOKENIZER
        try:
            return Tokenizer.from_file(str(path))
        except Exception as error:  # as above
            raise ModelUnavailable(f"{path} cannot be loaded: {error}") from error


@lru_cache(maxsize=1)
def reader() -> Reader:
    """Return the reader that ships with the project, one per process."""
    return Reader()


def spoken(person: str, text: str) -> str:
    """Return a statement as the relation head was trained to see it: behind the person's name, unless it holds it."""
    return text if not person or person in text else f"{person}: {text}"


def _cut_longer(left: list[int], right: list[int], *, room: int) -> tuple[list[int], list[int]]:
    """Cut two texts to so many tokens together, always the longer one: a context rather than its sentence."""
    if len(left) + len(right) <= room:
        return left, right
    half = room // 2
    if len(left) <= half:
        return left, right[: room - len(left)]
    if len(right) <= half:
        return left[: room - len(right)], right
    return left[:half], right[:half]


def _softmax(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    grown = np.exp(logits - logits.max())
    odds: NDArray[np.float32] = grown / grown.sum()
    return odds


def _rows(found: list[NDArray[np.float32]], *, width: int) -> NDArray[np.float32]:
    return np.array(found, dtype=np.float32).reshape(len(found), width)
