// A parity map of two ranks by hand: two steps of two layers, in which the gradient of layer 1's norm is the first that
// is wrong, on rank 1.
#pragma once
#include <string>
#include <utility>

#include "viz/model/parity/parity_map.h"

namespace ranklab::viz::samples {

inline ParityRow parity_row(int64_t step, const std::string& phase, const std::string& name, const std::string& kind,
                            double eps0, double eps1) {
  ParityRow row{.step = step, .phase = phase, .name = name, .kind = kind, .allowed = 16};
  for (const double eps : {eps0, eps1})
    row.cells.push_back(ParityCell{.eps = eps,
                                   .wrong = eps > 16,
                                   .slice = "[0:4, :]",
                                   .place = eps > 0 ? "[2, 1]" : "",
                                   .got = 0.5,
                                   .want = 0.25});
  return row;
}

inline ParityMap parity_map(const std::string& title = "--tp 2") {
  ParityMap map{.title = title,
                .reference = "one rank",
                .type = "Float",
                .verdict = "DIFFERENT, first in step 0, backward: layers.1.norm.weight grad",
                .same = false,
                .facts = {{"how far", "1.6e+06 eps", true}, {"wrong on", "rank 1 (tp1)"}, {"to blame", "tp", true}},
                .ranks = {"tp0", "tp1"}};
  const auto add = [&](auto... parts) { map.rows.push_back(parity_row(parts...)); };
  for (int64_t step = 0; step < 2; ++step) {
    for (const char* layer : {"layers.0", "layers.1"})
      for (const char* module : {".norm", ".attention", ".mlp"})
        for (const char* kind : {"input", "output"})
          add(step, "forward", std::string(layer) + module, kind, 0.0, step == 0 ? 1.0 : 170.0);
    add(step, "loss", "head", "loss", 2.0, 2.0);
    map.rows.back().cells[1].reset();
    add(step, "backward", "head", "grad_output", 1.0, 3.0);
    for (const char* layer : {"layers.1", "layers.0"}) {
      add(step, "backward", std::string(layer) + ".mlp", "grad_output", 1.0, 3.0);
      add(step, "backward", std::string(layer) + ".norm.weight", "grad", 1.0, layer[7] == '1' ? 1.6e6 : 5.0);
      add(step, "backward", std::string(layer) + ".norm", "grad_input", 0.2, 6.0);
    }
  }
  return map;
}

}  // namespace ranklab::viz::samples
