#include "core/nn/recomputable_output.h"

#include <atomic>

namespace ranklab {
namespace {

std::atomic<bool> g_keeps{false};

}  // namespace

void keep_cheap_outputs(bool keep) { g_keeps = keep; }
bool keeps_cheap_outputs() { return g_keeps; }

}  // namespace ranklab
