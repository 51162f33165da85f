// A world whose ranks' tensors have shapes and no numbers (LibTorch's meta device): the training code runs as it is,
// its virtual clocks and memory books are those of a real run, and nothing is computed or held. Ranks that do alike
// need not all run: one of them stands in for the others, so a cluster of thousands is planned in a second. What a
// number would decide is decided by none being special: experts get equally many tokens, no step overflows. Sources:
// PyTorch's meta device; Megatron-LM and DeepSpeed plan memory from formulas instead. Cost: a thread per rank that
// runs, and a microsecond or two for each operator. Thread rule: run() belongs to one thread at a time.
#pragma once
#include <memory>
#include <vector>

namespace ranklab {

class World;  // core/comm/world.h

// stand_in[rank]: the rank that runs in its place; itself, for those that run. Throws kInvalidArgument for a stand-in
// that does not run.
std::shared_ptr<World> make_meta_world(std::vector<int> stand_in);

}  // namespace ranklab
