#include "core/parallel/tensor_parallel.h"

#include <utility>

namespace ranklab {
namespace {

thread_local bool sequence_is_whole = false;

}  // namespace

WholeSequenceScope::WholeSequenceScope() : previous_(std::exchange(sequence_is_whole, true)) {}
WholeSequenceScope::~WholeSequenceScope() { sequence_is_whole = previous_; }

bool sequences_are_whole() { return sequence_is_whole; }

}  // namespace ranklab
