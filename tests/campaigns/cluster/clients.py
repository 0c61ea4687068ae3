"""clients.py — a model, texts and the address of its shards' service in, every kind of answer counted out."""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from typing import Any

import beamwood as bw

_PATIENCE = 20.0  # seconds for one answer


class Clients:
    """Threads that ask without pause, half of the times for partial answers, and compare."""

    def __init__(self, model: bw.Model, texts: list[str], url: str, threads: int = 3) -> None:
        self._url, self._stop = url, threading.Event()
        self._expected = {t: json.loads(b"{" + model.search_json(t).fields + b"}")["hits"] for t in texts}
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._said: Counter[str] = Counter()  # errors, word for word
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(threads)]
        for thread in self._threads:
            thread.start()

    def _run(self, number: int) -> None:
        dice = random.Random(number)
        while not self._stop.is_set():
            self.once(dice, dice.random() < 0.5)

    def once(self, dice: random.Random, partial: bool = False) -> bool:
        """Asks; whether it was a whole answer."""
        text = dice.choice(list(self._expected))
        status, answer = self._ask({"text": text, "partial": True} if partial else {"text": text})
        if status != 200:
            self.counts[f"status {status}" if status else "no answer"] += 1
            if not isinstance(answer, str):
                answer = answer["error"]
                answer.pop("request_id", None)
            self._said[f"{status}: {answer}"[:300]] += 1
            return False
        if not answer.get("coverage", {"exact": True})["exact"]:
            self.counts["partial, declared"] += 1
            return False
        right: bool = answer["hits"] == self._expected[text]
        self.counts["whole and right" if right else "WRONG"] += 1
        if not right:
            self.wrong.append(text)
        return right

    def _ask(self, body: dict[str, Any]) -> tuple[int, Any]:
        """Status and answer, a text where it is no JSON; 0 where nobody answered."""
        asked = urllib.request.Request(
            f"{self._url}/v1/search", json.dumps(body).encode(), {"content-type": "application/json"}
        )
        try:
            with urllib.request.urlopen(asked, timeout=_PATIENCE) as answer:
                status, said = int(answer.status), answer.read()
        except urllib.error.HTTPError as error:
            status, said = error.code, error.read()
        except (OSError, http.client.HTTPException) as error:
            return 0, type(error).__name__
        try:
            return status, json.loads(said)
        except ValueError:
            return status, said.decode(errors="replace")

    def told(self) -> str:
        """All kinds of answers, and the errors as they were worded."""
        lines = [f"  {count:6} x {said}" for said, count in self._said.most_common(30)]
        return "\n".join([str(dict(self.counts)), *lines])

    def close(self) -> None:
        """Ends the threads."""
        self._stop.set()
        for thread in self._threads:
            thread.join()


def whole_after(clients: Clients, dice: random.Random, most: float = 120.0) -> float:
    """Seconds until five whole answers came one after the other; at most so many."""
    since, streak = time.monotonic(), 0
    while streak < 5 and time.monotonic() - since < most:
        streak = streak + 1 if clients.once(dice) else 0
    return time.monotonic() - since
