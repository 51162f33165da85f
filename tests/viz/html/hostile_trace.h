// A trace whose every text tries to become markup or a script.
#pragma once
#include <string>

#include "tests/viz/model/stage_sample.h"
#include "viz/model/stage/script.h"

namespace ranklab::viz::samples {

inline const std::string kAttack = "</script><script>document.body.dataset.hacked='yes'</script><!--";

inline TraceStore hostile_store() {
  TraceFile file = one_microbatch();
  file.title = kAttack;
  file.title += " @DATA@ @PROGRAM@ \xff\xfe <img src=x onerror=alert(1)>";
  for (RankTrace& rank : file.ranks) {
    rank.label = "pp0 \"><b>";
    rank.label += kAttack;
    for (std::string& name : rank.names) {
      if (name != "layers.2.mlp") continue;
      name = "layers.2.";
      name.append(kAttack).append("\xe2\x80\xa8`${alert(1)}`");
    }
  }
  return TraceStore(std::move(file), kAttack);
}

inline StageScript step_script(const TraceStore& store) { return stage_script(store, store.step_window(0).value()); }

}  // namespace ranklab::viz::samples
