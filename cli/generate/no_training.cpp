#include "cli/generate/no_training.h"

#include "core/base/error.h"

namespace ranklab {
namespace {

[[noreturn]] void refuse(const char* what) {
  throw Error(ErrorKind::kInternal, {.where = "generate",
                                     .what = std::string(what) + " of a model that is not trained was asked for",
                                     .got = "no training",
                                     .want = "only logits",
                                     .fix = "report this"});
}

}  // namespace

Batch NoData::train_batch(int64_t /*step*/, int64_t /*microbatch*/) { refuse("a batch"); }
Batch NoData::validation_batch(int64_t /*index*/, int64_t /*microbatch*/) { refuse("a batch"); }

void NoOptimizer::begin_step(int64_t /*num_microbatches*/) { refuse("a step"); }
void NoOptimizer::begin_pass(const GradPass& /*pass*/) { refuse("a backward"); }
void NoOptimizer::end_pass() { refuse("a backward"); }
double NoOptimizer::finish_step(double /*lr*/) { refuse("an update"); }

}  // namespace ranklab
