#include "cli/data/data_export.h"

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/common/command_line.h"
#include "cli/common/json_output.h"
#include "core/base/counted.h"
#include "core/base/files/output_file.h"
#include "core/data/megatron_output.h"

namespace ranklab {
namespace {

struct DataExport {
  std::string folder, to = "megatron", out;
  bool force = false, json = false;
};

int export_shards(const DataExport& options) {
  for (const std::string& path : {megatron_bin(options.out), megatron_index(options.out)})
    check_output({.path = path, .option = "--out", .inputs = {options.folder}, .force = options.force});
  const MegatronExported made = export_megatron(options.folder, options.out);
  if (options.json) {
    std::fputs(json_result({{"bin", made.bin},
                            {"index", made.index},
                            {"dtype", made.dtype},
                            {"tokens", made.tokens},
                            {"documents", made.documents}})
                   .c_str(),
               stdout);
    return 0;
  }
  std::printf("%s, %s: %ld tokens (%s) in %s\n", made.bin.c_str(), made.index.c_str(), static_cast<long>(made.tokens),
              made.dtype.c_str(), counted(made.documents, "document").c_str());
  return 0;
}

}  // namespace

CommandAction setup_data_export(CommandLine& app) {
  auto options = std::make_shared<DataExport>();
  app.add_option("FOLDER", options->folder, "folder of shards")->required();
  app.add_option("--to", options->to, "output format: megatron (PREFIX.bin and PREFIX.idx)")
      ->one_of({"megatron"})
      ->capture_default_str();
  app.add_option("-o,--out", options->out, "PREFIX of the output files")->required()->type_name("PREFIX");
  app.add_flag("--force", options->force, "overwrite existing files");
  app.add_flag("--json", options->json, "print one JSON object");
  return [options] { return export_shards(*options); };
}

}  // namespace ranklab
