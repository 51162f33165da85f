#include "cli/generate/saved_run_defaults.h"

#include "core/base/error.h"

namespace ranklab {

std::string saved_model_of(const ConfigOptions& options) {
  const std::string load = options.said("checkpoint.load");
  if (load != "auto") return load;
  const std::string save = options.said("checkpoint.save");
  RANKLAB_CHECK(!save.empty(), ErrorKind::kInvalidArgument, .where = "checkpoint",
                .what = "--load auto has no effect without --save", .got = "--load auto alone", .want = "--save FOLDER",
                .fix = "name the checkpoint: --load FOLDER");
  return save;
}

}  // namespace ranklab
