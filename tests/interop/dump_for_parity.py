"""Writes what a PyTorch model computes into files that `ranklab parity --dumps` compares (docs/parity.md).

    dump = ParityDump(model, "dumps/tp2", rank, {"tp": (rank, 2)}, slices=my_slices)
    with dump.step(0):
        loss(model(x)).backward()
    # a folder dumps/tp2/step-0 with a file of each rank

`slices(name, kind, tensor)` says which part of a global tensor this rank's is: {"global_shape": [...], "dims": {"0":
[[begin, end]]}}, or None where the rank has all of it. Kinds: input, output, grad_output, grad_input of modules, weight
and grad of parameters. Needs torch and safetensors alone. As a program it is its own test:

    python dump_for_parity.py RANKLAB
"""
import contextlib
import json
import os
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import save_file


def first_tensor(value):
    if torch.is_tensor(value):
        return value
    if isinstance(value, (list, tuple)):
        return next((found for one in value if (found := first_tensor(one)) is not None), None)
    return None


class ParityDump:
    def __init__(self, model, folder, rank=0, coordinates=None, slices=None):
        self.model, self.folder, self.rank = model, folder, rank
        self.coordinates = coordinates or {}
        self.slices = slices or (lambda name, kind, tensor: None)
        self.tensors, self.metadata = None, None
        for name, module in model.named_modules():
            if not name:
                continue
            module.register_forward_hook(lambda m, args, out, name=name: self.keep_forward(name, args, out))
            module.register_full_backward_hook(lambda m, grad_in, grad_out, name=name: self.keep_backward(name, grad_in, grad_out))

    def keep(self, name, kind, value, key):
        tensor = first_tensor(value)
        if self.tensors is None or tensor is None:
            return
        self.tensors[key] = tensor.detach().cpu().clone().contiguous()
        part = self.slices(name, kind, tensor)
        if part is not None:
            self.metadata["slice/" + key] = json.dumps(part)

    def keep_forward(self, name, args, out):
        self.keep(name, "input", args, name + "/input")
        self.keep(name, "output", out, name + "/output")

    def keep_backward(self, name, grad_in, grad_out):
        self.keep(name, "grad_output", grad_out, name + "/grad_output")
        self.keep(name, "grad_input", grad_in, name + "/grad_input")

    @contextlib.contextmanager
    def step(self, number):
        self.tensors, self.metadata = {}, {}
        for name, parameter in self.model.named_parameters():
            self.keep(name, "weight", parameter, "weight/" + name)
        yield self
        for name, parameter in self.model.named_parameters():
            if parameter.grad is not None:
                self.keep(name, "grad", parameter.grad, "grad/" + name)
        places = ", ".join(f"{axis} {place} of {size}" for axis, (place, size) in self.coordinates.items())
        self.metadata.update(coordinates=places or "one rank", order=json.dumps(list(self.tensors)))
        where = os.path.join(self.folder, f"step-{number}")
        os.makedirs(where, exist_ok=True)
        save_file(self.tensors, os.path.join(where, f"rank-{self.rank}.safetensors"), self.metadata)
        self.tensors = None


# The test: an MLP split over two tensor-parallel ranks, whose row-parallel output is or is not summed.

class Mlp(torch.nn.Module):
    def __init__(self, hidden, width):
        super().__init__()
        self.up = torch.nn.Linear(hidden, width, bias=False)
        self.down = torch.nn.Linear(width, hidden, bias=False)

    def forward(self, x):
        return self.down(torch.nn.functional.gelu(self.up(x)))


class Net(torch.nn.Module):
    def __init__(self, hidden, width, reduce=lambda x: x, copy=lambda x: x):
        super().__init__()
        self.reduce, self.copy = reduce, copy
        self.norm = torch.nn.LayerNorm(hidden)
        self.mlp = Mlp(hidden, width)
        self.block = torch.nn.Identity()

    def forward(self, x):
        return self.block(self.reduce(self.mlp(self.copy(self.norm(x)))))


class Both(torch.autograd.Function):
    """Sums over the ranks forward and copies backward, or the other way round: the two ends of tensor parallelism."""

    @staticmethod
    def forward(ctx, x, sums_forward, exchange):
        ctx.sums_backward, ctx.exchange = not sums_forward, exchange
        return exchange(x) if sums_forward else x.clone()

    @staticmethod
    def backward(ctx, grad):
        return (ctx.exchange(grad) if ctx.sums_backward else grad), None, None


HIDDEN, WIDTH, ROWS = 16, 32, 6


def whole_weights():
    torch.manual_seed(3)
    return torch.randn(WIDTH, HIDDEN, dtype=torch.float64), torch.randn(HIDDEN, WIDTH, dtype=torch.float64)


def train(folder, rank, size, forgets):
    import torch.distributed as dist

    def exchange(x):
        total = x.clone()
        if size > 1:
            dist.all_reduce(total)
        return total

    net = Net(HIDDEN, WIDTH // size, reduce=(lambda x: x) if forgets else lambda x: Both.apply(x, True, exchange),
              copy=lambda x: Both.apply(x, False, exchange)).double()
    up, down = whole_weights()
    part = slice(rank * WIDTH // size, (rank + 1) * WIDTH // size)
    with torch.no_grad():
        net.mlp.up.weight.copy_(up[part])
        net.mlp.down.weight.copy_(down[:, part])
    cut = [[part.start, part.stop]]

    def slices(name, kind, tensor):
        if size == 1:
            return None
        if name in ("mlp.up.weight", "mlp.down.weight"):
            dim = 0 if "up" in name else 1
            return {"global_shape": [WIDTH, HIDDEN] if dim == 0 else [HIDDEN, WIDTH], "dims": {str(dim): cut}}
        if (name, kind) in (("mlp.up", "output"), ("mlp.up", "grad_output"), ("mlp.down", "input"), ("mlp.down", "grad_input")):
            return {"global_shape": [ROWS, WIDTH], "dims": {"1": cut}}
        if name.startswith("mlp") and kind in ("output", "grad_input"):
            return {"global_shape": [size, *tensor.shape], "dims": {"0": [[rank, rank + 1]]}}  # a share of a sum
        return None

    torch.manual_seed(4)
    x = torch.randn(ROWS, HIDDEN, dtype=torch.float64, requires_grad=True)
    dump = ParityDump(net, folder, rank, {"tp": (rank, size)} if size > 1 else {}, slices)
    with dump.step(0):
        (net(x) ** 2).sum().backward()


def rank_main(folder, rank, size, port, forgets):
    import torch.distributed as dist

    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=size)
    train(folder, rank, size, forgets)
    dist.destroy_process_group()


def main(ranklab):
    import torch.multiprocessing as mp

    with tempfile.TemporaryDirectory() as scratch:
        train(f"{scratch}/one", 0, 1, False)
        for name, forgets in (("right", False), ("wrong", True)):
            import socket

            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            ranks = [mp.get_context("spawn").Process(target=rank_main, args=(f"{scratch}/{name}", r, 2, port, forgets)) for r in range(2)]
            for one in ranks:
                one.start()
            for one in ranks:
                one.join()
        for name, code in (("right", 0), ("wrong", 4)):
            run = subprocess.run([ranklab, "parity", "--dumps", f"{scratch}/{name}", "--dumps", f"{scratch}/one", "--json"],
                                 capture_output=True, text=True)
            print(name, run.returncode, run.stderr)
            assert run.returncode == code, run.stdout
            result = json.loads(run.stdout)["data"]
            assert result["tensors"] >= 10, result
            if code:
                assert result["first"]["name"] == "block" and result["axis"] == "tp", result
                assert "the sum over tp is missing" in result["why"][0]["what"], result
    print("ok")


if __name__ == "__main__":
    main(sys.argv[1])
