#include "cli/parity/parity_request.h"

#include "core/base/error.h"
#include "core/base/files/output_file.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

void check_dumps(const ParityRequest& request) {
  if (request.dumps.empty()) return;
  RANKLAB_CHECK(!request.audit || request.dumps.size() == 1, ErrorKind::kInvalidArgument, .where = "--audit",
                .what = "an audit looks at one run", .got = join(request.dumps, " "), .want = "--dumps FOLDER",
                .fix = "give one --dumps");
  RANKLAB_CHECK(request.audit || request.dumps.size() >= 2, ErrorKind::kInvalidArgument, .where = "--dumps",
                .what = "nothing to compare with", .got = join(request.dumps, " "),
                .want = "the folder of a run and that of its reference", .fix = "--dumps RUN --dumps REFERENCE");
}

void check_picture(const ParityRequest& request) {
  const std::string& out = request.out;
  if (out.empty()) return;
  RANKLAB_CHECK(!request.all || !request.dumps.empty(), ErrorKind::kInvalidArgument, .where = "--out",
                .what = "a picture shows one layout", .got = "--out " + out + " with --all",
                .want = "one layout, as flags", .fix = "leave --all out");
  RANKLAB_CHECK(out.ends_with(".html") || out.ends_with(".svg") || out.ends_with(".json"), ErrorKind::kInvalidArgument,
                .where = "--out", .what = "not the name of a page, a drawing or a file for the window",
                .got = quote(out), .want = "a name that ends in .html, .svg or .json", .fix = "use --out parity.html");
  check_output({.path = out, .option = "--out", .inputs = request.dumps, .force = request.force});
}

}  // namespace

void check_request(const ParityRequest& request) {
  const bool numbers = request.audit || !request.dumps.empty() || !request.against.empty() || !request.out.empty();
  RANKLAB_CHECK(!request.types || !numbers, ErrorKind::kInvalidArgument, .where = "--types",
                .what = "types are followed on shapes, without numbers to compare or to draw",
                .got = "--types with --audit, --dumps, --against or --out", .want = "the settings of a layout",
                .fix = "leave the other option out");
  check_dumps(request);
  check_picture(request);
}

}  // namespace ranklab
