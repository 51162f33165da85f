// Which ranks run in place of all: one of each pipeline rank represents the others of its stage, which behave alike,
// and it is the one that takes longest, so the one that owns most of what data-parallel ranks shard. Where several may
// be that one (most arithmetic, most kernels, most matrices, most exchanged between nodes, most or longest documents),
// each is a choice, and who records them lets the slowest count; of a small world and model all ranks run then, since
// one may wait for another here and the other for it there. Cost: arithmetic over the ranks, and, where shards are
// unequal, the build of one rank of each stage on shapes. Thread rule: the thread that would train.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "core/config/train_config.h"

namespace ranklab {

class World;               // core/comm/world.h
struct ReplicaDocuments;   // core/plan/replica_documents.h
struct RuntimeComponents;  // core/runtime/components.h

// For each global rank the one that runs in its place.
using StandIns = std::vector<int>;
// Makes a world of shapes. Programs pass make_meta_world().
using ShapeWorldMaker = std::function<std::shared_ptr<World>(StandIns)>;

// The first of each stage that attends longest.
StandIns first_stand_ins(const RunPlan& plan);
// Those that may be the slowest of their stages, each choice once. `replicas`: what the batches of each data-parallel
// rank attend to, where attention keeps within documents, else none.
std::vector<StandIns> choices_of_stand_ins(const RunPlan& plan, const ShapeWorldMaker& make_world,
                                           const RuntimeComponents& parts,
                                           const std::vector<ReplicaDocuments>& replicas);

// Those to be recorded: the choices, or, where it is not known which rank of a small world is the slowest, all ranks
// for themselves.
std::vector<StandIns> stand_ins_to_record(const RunPlan& plan, const ShapeWorldMaker& make_world,
                                          const RuntimeComponents& parts,
                                          const std::vector<ReplicaDocuments>& replicas);

}  // namespace ranklab
