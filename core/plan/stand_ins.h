// Which ranks are recorded in place of all. The ranks of a stage behave alike, so one of them represents the others:
// the one that takes longest, which is the one that owns most of what data-parallel ranks shard. Where several could
// take longest (most arithmetic, kernels, matrices, exchanges between nodes, most or longest documents), each is a
// choice; the caller records all of them and uses the slowest. In a small world with a small model all ranks run in
// that case, because two ranks may wait for each other at different points of the step. Cost: arithmetic over the
// ranks, and, where shards are unequal, building one rank of each stage on shapes. Thread rule: the thread that would
// train.
#pragma once
#include <vector>

#include "core/config/train_config.h"
#include "core/runtime/shapes/shape_world.h"

namespace ranklab {

struct ReplicaDocuments;   // core/runtime/replica_documents.h
struct RuntimeComponents;  // core/runtime/components.h

// In each stage, the first of the ranks whose attention takes longest.
StandIns first_stand_ins(const RunPlan& plan);
// The ranks that could be the slowest of their stages; each distinct choice once. `replicas`: the documents in each
// data-parallel rank's batches if attention stays within documents, else empty.
std::vector<StandIns> choices_of_stand_ins(const RunPlan& plan, const ShapeWorldMaker& make_world,
                                           const RuntimeComponents& parts,
                                           const std::vector<ReplicaDocuments>& replicas);

// The stand-ins to record: the choices above, or, if it is unknown which rank of a small world is the slowest, every
// rank in its own place.
std::vector<StandIns> stand_ins_to_record(const RunPlan& plan, const ShapeWorldMaker& make_world,
                                          const RuntimeComponents& parts,
                                          const std::vector<ReplicaDocuments>& replicas);

}  // namespace ranklab
