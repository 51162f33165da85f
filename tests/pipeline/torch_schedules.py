"""torch.distributed.pipelining's side of csv_torch_test.cpp.

dump FOLDER        writes schedules that torch makes, NAME.compute_only.csv and NAME.compute_comms.csv
load P M STYLE FILE...   reads files into torch's runtime, which validates them and adds the messages
"""
import sys

import torch.distributed.pipelining.schedules as s
from torch.distributed.pipelining.stage import _PipelineStageBase


class Stage(_PipelineStageBase):
    """Only what a schedule asks of a stage before it runs."""

    def __init__(self, index, count, ranks, rank=0):
        self.submod = None
        self.stage_index = index
        self.num_stages = count
        self.group_size = ranks
        self.group_rank = rank
        self.group = None
        self.has_backward = True

    def _create_grad_recv_info(self, *args, **kwargs):
        raise NotImplementedError

    def _prepare_forward_infra(self, *args, **kwargs):
        raise NotImplementedError

    def _prepare_backward_infra(self, *args, **kwargs):
        raise NotImplementedError


def loss(output, target):
    return output


def stages(ranks, chunks, style):
    count = ranks * chunks
    mapping = s.generate_rank_to_stage_mapping(ranks, count, style=style)
    return [Stage(index, count, ranks) for index in mapping[0]]


def dump(folder):
    for name, make, ranks, chunks, style in [
        ("interleaved", s.ScheduleInterleaved1F1B, 4, 2, "loop"),
        ("bfs", s.ScheduleLoopedBFS, 4, 2, "loop"),
        ("zero_bubble", s.ScheduleInterleavedZeroBubble, 4, 2, "loop"),
        ("zbv", s.ScheduleZBVZeroBubble, 4, 2, "v"),
        ("dualpipev", s.ScheduleDualPipeV, 4, 2, "v"),
    ]:
        schedule = make(stages(ranks, chunks, style), 8, loss)
        if not hasattr(schedule, "pipeline_order_with_comms"):
            schedule._prepare_schedule_with_comms(schedule.pipeline_order)
        for form in ("compute_only", "compute_comms"):
            schedule._dump_csv(f"{folder}/{name}.{form}.csv", form)


def load(ranks, microbatches, style, files):
    for file in files:
        rows = open(file).read().splitlines()
        chunks = 1 + max(int(c.split("F")[0]) for row in rows for c in row.split(",") if "F" in c and c[0] != "(")
        runtime = s._PipelineScheduleRuntime(stages(ranks, chunks // ranks, style), microbatches, loss)
        runtime._load_csv(file)
        actions = [a for row in runtime.pipeline_order_with_comms.values() for a in row]
        sends = sum(a.computation_type in (s.SEND_F, s.SEND_B) for a in actions)
        print(f"{file.rsplit('/', 1)[-1]}: {len(runtime.pipeline_order)} rows, {sends} sends")


if sys.argv[1] == "dump":
    dump(sys.argv[2])
else:
    load(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5:])
