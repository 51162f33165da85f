#include "cli/config/megatron_data.h"

#include "cli/common/megatron_split.h"
#include "core/base/error.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

void take_split(const MegatronWords& words, const char* usual, ForeignConfig& out) {
  const std::string text = words.text("--split").value_or("969,30,1");
  const auto split = parse_megatron_split(text);
  RANKLAB_CHECK(split, ErrorKind::kInvalidArgument, .where = "config from-megatron",
                .what = "--split is not a list of parts", .got = quote(text), .want = "949,50,1",
                .fix = "write those of training, validation and test");
  const bool given = words.has("--split");
  out.settings.push_back({"data.validation_fraction", split->validation, given ? "--split" : usual});
  if (given && split->test != "0")
    out.left_out.push_back(
        "--split " + text + ": its third part, " + split->test +
        " of all, is trained on, too; ranklab eval --load CHECKPOINT --text FILE evaluates the trained model");
}

}  // namespace

ForeignConfig read_megatron_data(const MegatronWords& words, const char* usual) {
  ForeignConfig out;
  for (const auto& [flag, own] : {std::pair{"--data-path", "--data-path"},
                                  {"--data-args-path", "--data-path"},
                                  {"--per-split-data-args-path", "--data-path and --valid-data-path"},
                                  {"--train-data-path", "--data-path"},
                                  {"--valid-data-path", "--valid-data-path"}}) {
    if (!words.has(flag)) continue;
    out.settings.push_back({"data.mock", "true", flag});
    out.left_out.push_back(std::string(flag) +
                           ": generated sentences; `ranklab data prepare --from megatron` makes shards of such files, "
                           "for " +
                           own);
  }
  const bool of_its_own = words.has("--valid-data-path") || words.has("--per-split-data-args-path");
  if (!of_its_own && !words.has("--train-data-path")) {
    if (words.has("--split") || !words.has("--validation-fraction")) take_split(words, usual, out);
    return out;
  }
  if (!of_its_own)  // there are no validation data then
    out.settings.push_back({"data.validation_fraction", "0", "--train-data-path"});
  if (words.has("--split"))
    out.left_out.push_back("--split: it applies to --data-path alone, not to data for training and validation each");
  return out;
}

}  // namespace ranklab
