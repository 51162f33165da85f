// Every bug of the museum is found, with its module and its axis.
#include <gtest/gtest.h>

#include <filesystem>

#include "core/parity/exhibit_parity.h"
#include "tests/parity/world_of.h"

namespace ranklab {
namespace {


TEST(ParityOfMuseum, Explore) {
  for (const Exhibit* exhibit : exhibits()) {
    const std::string folder = testing::TempDir() + "parity_museum_" + exhibit->name;
    std::filesystem::remove_all(folder);
    const auto begin = std::chrono::steady_clock::now();
    try {
      const ExhibitFinding f = examine_exhibit(*exhibit, world_of, folder);
      const auto* w = f.result.wrong();
      printf("%-26s module %s axis %s (%s, want %s) %s | %s | %.1f s\n", exhibit->name, f.module ? "yes" : "NO ", f.axis ? "yes" : "NO ", f.axis_text().c_str(), exhibit->guilty_axis, w ? w->key.text().c_str() : f.result.ended.substr(0, 60).c_str(), f.result.smallest.c_str(), std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
      if (w && !(f.module && f.axis)) {
        printf("    step %ld, %g eps of %g, want module %s\n", w->key.step, w->worst.eps, w->tolerance, exhibit->guilty_module);
        for (auto& why : f.result.why) printf("    why %s\n", why.what.c_str());
        for (auto& n : f.result.narrowed) printf("    %s %s\n", n.flags.c_str(), n.gone ? "gone" : "stays");
      }
    } catch (const std::exception& e) {
      printf("%-26s EXCEPTION %s\n", exhibit->name, e.what());
    }
    fflush(stdout);
  }
}

}  // namespace
}  // namespace ranklab
