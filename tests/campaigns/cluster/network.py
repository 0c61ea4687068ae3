"""network.py — Ray nodes in network namespaces of their own, delay, loss and partitions in; wrong answers out.

    python tests/campaigns/cluster/network.py [--partitions 6] [--delay 0.01] [--loss 0.01] [--rows 10000] [--seed 0]

As root. Three machines with addresses, process numbers and Ray folders of their own, wired by a switch (wires.py) that
delays and loses frames. A training goes over that network, then one during which a machine is cut off; files are
those of one machine, or the training says what it could not do. Then a model that was cut is served, a machine is cut
off again and again, also for longer than Ray takes to give it up, while clients ask without pause. The law: an answer
is that of the whole model, or an error, or declares that it is partial; and the service is whole again.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import beamwood as bw
from campaigns.cluster.clients import Clients, whole_after
from campaigns.cluster.nodes import LEARNING, QUIET, awaited
from campaigns.cluster.wires import Net, address, alone, wired

PORT = 8000
HEAD = f"{address(0)}:6379"
CPUS = (1, 2, 1)  # of the machines: three shards and an ingress fill them, so every machine has a part
GIVEN_UP_AFTER = 75.0  # seconds; Ray gives a machine up after 65
NEARLY = 40.0  # seconds; it has not, and has begun to replace what the machine had
LONGEST = 30.0  # seconds from the return of a machine until the service is whole
# Connections that hear nothing are made anew, as docs/ray/serving.md says; else they wait long after a cut has ended.
HEARD = {f"RAY_grpc_{kind}keepalive_{what}_ms": "5000" for kind in ("", "client_") for what in ("time", "timeout")}
RAY = Path(sys.executable).with_name("ray")


def come_up(net: Net) -> None:
    """A head, and machines that start Ray again whenever it ends, as a supervisor would."""
    each = f"--object-store-memory={100 << 20} --block --disable-usage-stats"
    for machine, cpus in enumerate(CPUS):
        own = f"--node-ip-address={address(machine)} --num-cpus={cpus} {each}"
        role = "--head --port=6379 --include-dashboard=false" if machine == 0 else f"--address={HEAD}"
        net.start(machine, ["sh", "-c", f"while :; do {RAY} start {role} {own}; sleep 1; done"])


def on_head(net: Net, words: list[str], seconds: float) -> subprocess.CompletedProcess[str]:
    """What a command on the head said."""
    return subprocess.run(net.inside(0, words), capture_output=True, text=True, timeout=seconds, check=False)


def wait_for_machines(net: Net) -> None:
    """Until all are there."""
    told = "import ray, sys; ray.init(address=sys.argv[1], logging_level='error', log_to_driver=False);"
    told += "sys.exit(sum(node['Alive'] for node in ray.nodes()) != int(sys.argv[2]))"
    ends = time.monotonic() + 180
    while on_head(net, [sys.executable, "-c", told, HEAD, str(len(CPUS))], 90).returncode:
        if time.monotonic() > ends:
            sys.exit("the machines did not come up")
        time.sleep(1)


def trained(net: Net, folder: Path, args: argparse.Namespace) -> int:
    """How many trainings gave another file, or neither a file nor one line that says why not."""
    found = bw.datasets.load("library-subjects")
    some = zip(found.train_texts[: args.rows], found.train_labels[: args.rows], strict=True)
    (folder / "rows.jsonl").write_text("".join(json.dumps({"text": t, "labels": y}) + "\n" for t, y in some))
    train = [sys.executable, "-m", "beamwood", "train", str(folder / "rows.jsonl"), "-q", "-o"]
    subprocess.run([*train, str(folder / "here.bw")], check=True, stdout=subprocess.DEVNULL)
    bad = 0
    for what, lasts in (("no partition", 0.0), ("a machine cut off for 5 s", 5.0), ("a machine cut off", 600.0)):
        net.told(args.delay, args.loss)
        begun, model = time.monotonic(), folder / "there.bw"
        words = net.inside(0, [*train, str(model), "--ray", HEAD])
        training = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if not awaited(LEARNING, lambda: training.poll() is None):  # noqa: B023 (asked at once)
            sys.exit("no piece was learned on the machines: nothing was tried")
        if lasts:
            net.told(args.delay, args.loss, cut=(2,))
        try:
            _, said = training.communicate(timeout=lasts or 600)
        except subprocess.TimeoutExpired:
            net.told(args.delay, args.loss)
            _, said = training.communicate(timeout=600)
        same = training.returncode == 0 and model.read_bytes() == (folder / "here.bw").read_bytes()
        plain = training.returncode != 0 and "Traceback" not in said
        bad += not (same or plain)
        came = "the file of one machine" if same else f"an error: {said[-300:]}" if plain else f"WRONG: {said[-800:]}"
        print(f"training, {what}: {time.monotonic() - begun:.1f} s, {came}", flush=True)
        model.unlink(missing_ok=True)
    net.told(args.delay, args.loss)
    wait_for_machines(net)
    return bad


def served(net: Net, folder: Path, args: argparse.Namespace) -> int:
    """How many promises were broken."""
    found = bw.datasets.load("library-subjects")
    texts = found.train_texts[:2000]
    model = bw.train_text(texts, found.train_labels[:2000], lexical=True, trees=2, progress=False)
    bw.shard(model, folder / "parts", 3)
    told = "import sys, beamwood.ray as r; r.serve(sys.argv[1], address=sys.argv[2], host='0.0.0.0', shard_seconds=2.0)"
    said = on_head(net, [sys.executable, "-c", told, str(folder / "parts"), HEAD], 240)
    if said.returncode:
        sys.exit(f"serving did not start: {said.stderr[-800:]}")
    dice, slow = random.Random(args.seed), 0
    clients = Clients(model, texts[:100], f"http://{address(0)}:{PORT}")
    try:
        print(f"whole after {whole_after(clients, dice):.1f} s, delay {args.delay} s, loss {args.loss}", flush=True)
        for number in range(args.partitions):
            machine = 1 + number % 2
            lasts = (dice.uniform(2, 8), dice.uniform(2, 8), NEARLY, GIVEN_UP_AFTER)[number % 4]
            before = dict(clients.counts)
            net.told(args.delay, args.loss, cut=(machine,))
            time.sleep(lasts)
            net.told(args.delay, args.loss)
            took = whole_after(clients, dice)
            slow += took > LONGEST
            met = {name: count - before.get(name, 0) for name, count in clients.counts.items()}
            print(
                f"{number + 1:3} machine {machine} cut off for {lasts:4.1f} s: whole {took:5.1f} s after, {met}",
                flush=True,
            )
    finally:
        clients.close()
    print(f"{args.partitions} partitions, {len(clients.wrong)} wrong answers, {slow} times longer than {LONGEST:.0f} s")
    print(clients.told())
    return len(clients.wrong) + slow


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=6)
    parser.add_argument("--delay", type=float, default=0.01, help="seconds, each way; half to one and a half of it")
    parser.add_argument("--loss", type=float, default=0.01, help="share of frames")
    parser.add_argument("--rows", type=int, default=30_000, help="of the trainings")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    alone()
    os.environ.update(
        {**QUIET, "RAY_AUTH_MODE": "disabled"}
    )  # a head takes a token that it finds, other machines do not
    with tempfile.TemporaryDirectory() as name, wired(len(CPUS), args.seed) as net:
        come_up(net)
        wait_for_machines(net)
        net.told(args.delay, args.loss)
        sys.exit(1 if trained(net, Path(name), args) + served(net, Path(name), args) else 0)


if __name__ == "__main__":
    main()
