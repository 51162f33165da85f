// A world whose ranks' tensors have shapes but no values (LibTorch's meta device): the training code runs unchanged,
// its virtual clocks and memory books are those of a real run, and nothing is computed or allocated. Ranks that behave
// alike need not all run: one of them represents the others, so a cluster of thousands is planned in a second.
// Behaviour that depends on values is replaced by the uniform case: experts get equally many tokens, and no step
// overflows. Sources: PyTorch's meta device; Megatron-LM and DeepSpeed plan memory from formulas instead. Cost: a
// thread per running rank, and a microsecond or two per operator. Thread rule: run() belongs to one thread at a time.
#pragma once
#include <memory>
#include <vector>

namespace ranklab {

class World;  // core/comm/world.h

// stand_in[rank]: the rank that runs in its place; for a running rank, the rank itself. Throws kInvalidArgument if a
// representative is not itself a running rank.
std::shared_ptr<World> make_meta_world(std::vector<int> stand_in);

}  // namespace ranklab
