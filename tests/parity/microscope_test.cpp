#include <gtest/gtest.h>

#include "core/parity/microscope.h"
#include "tests/parity/world_of.h"
#include "tests/support/small_config.h"

namespace ranklab {
namespace {


TEST(Explore, Layouts) {
  for (const char* dtype : {"fp64", "fp32"}) {
    TrainConfig c = small_config();
    c.params_dtype = dtype;
    c.parallel = {.world = 8, .tp = 2, .pp = 2};
    c.clip_grad = 0.05;
    const Microscope scope(on_one_rank(c), world_of, {.progress = [](const std::string& what) { printf("... %s\n", what.c_str()); }});
    if (getenv("BREAK")) setenv("RANKLAB_BREAK", getenv("BREAK"), 1);
    const ParityResult result = scope.examine(c);
    unsetenv("RANKLAB_BREAK");
    printf("%s: %zu tensors, %zu pieces, %zu wrong, ended %s; not compared %zu\n", dtype, result.comparison.verdicts.size(), result.comparison.pieces, result.comparison.count_wrong(), result.ended.c_str(), result.comparison.not_compared.size());
    for (const auto& key : result.comparison.not_compared) if (key.step == 0) printf("  not compared: %s %s\n", std::string(name(key.phase)).c_str(), key.text().c_str());
    if (auto* close = result.comparison.closest()) printf("closest %s %g of %g\n", close->key.text().c_str(), close->worst.eps, close->tolerance);
    if (auto* wrong = result.wrong()) {
      printf("first wrong: step %ld %s %s: %g eps of %g; %s\n", wrong->key.step, std::string(name(wrong->key.phase)).c_str(), wrong->key.text().c_str(), wrong->worst.eps, wrong->tolerance, result.where.c_str());
      for (auto& why : result.why) printf("  why: %s\n", why.what.c_str());
      for (auto& n : result.narrowed) printf("  %s %s: %s\n", n.axis.c_str(), n.flags.c_str(), n.gone ? "gone" : "stays");
      printf("  smallest %s; axis %s\n", result.smallest.c_str(), result.axis().c_str());
    }
  }
}

}  // namespace
}  // namespace ranklab
