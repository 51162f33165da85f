// Parity finds every bug of the museum and names its module and its axis, with the exceptions listed here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "backends/meta/meta_world.h"
#include "core/config/exhibit_config.h"
#include "core/parity/exhibit_parity.h"
#include "core/plan/type_check.h"
#include "tests/parity/world_of.h"

namespace ranklab {
namespace {

// With one tp rank each of its experts is on one rank, too: ep explains it as well.
const std::set<std::string> kOtherAxis = {"experts-missing-from-norm"};

// A part of the exhibit's row in the table of docs/museum.md.
std::string found_in_row(const Exhibit& exhibit, const ExhibitFinding& finding) {
  const TensorKey& first = finding.result.wrong()->key;
  TrainConfig config = config_of_flags(exhibit_flags(exhibit));
  config.inject = exhibit.name;
  const std::string types = types_of_step(resolve(config), make_meta_world)->first_named();
  return " | " + first.text() + ", step " + std::to_string(first.step) + " | " + finding.axis_text() + " | `" +
         finding.result.smallest + "` | " + (types.empty() ? "" : types + " ") + "| ";
}

std::vector<std::string> rows_of(const std::string& name) {
  std::ifstream page(RANKLAB_SOURCE_DIR "/docs/museum.md");
  std::vector<std::string> rows;
  for (std::string line; std::getline(page, line);)
    if (line.starts_with("| `" + name + "` |")) rows.push_back(line);
  return rows;
}

// The last cell of the exhibit's row there: how long parity took.
double seconds_in_row(const std::string& name) {
  const std::string row = rows_of(name).back();
  const size_t end = row.rfind(" |"), begin = row.rfind("| ", end - 1);
  return std::stod(row.substr(begin + 2, end - begin - 2));
}

class ParityOfMuseum : public testing::TestWithParam<const Exhibit*> {};

TEST_P(ParityOfMuseum, NamesModuleAndAxis) {
  const Exhibit& exhibit = *GetParam();
  const std::string folder = testing::TempDir() + "parity_museum_" + exhibit.name;
  std::filesystem::remove_all(folder);
  const ExhibitFinding finding = examine_exhibit(exhibit, world_of, folder);
  std::filesystem::remove_all(folder);
  EXPECT_EQ(!finding.result.ended.empty(), exhibit.kind == BugKind::kHang) << finding.result.ended;
  const TensorVerdict* wrong = finding.result.wrong();
  ASSERT_NE(wrong, nullptr);
  EXPECT_TRUE(finding.module) << wrong->key.text();
  EXPECT_LT(seconds_in_row(exhibit.name), 10);
  EXPECT_THAT(rows_of(exhibit.name),
              testing::Contains(testing::AllOf(
                  testing::HasSubstr(found_in_row(exhibit, finding)),
                  testing::StartsWith("| `" + std::string(exhibit.name) + "` | " + exhibit.citation + " | "))));
  EXPECT_EQ(finding.axis, !kOtherAxis.contains(exhibit.name)) << finding.axis_text();
}

// What shows in one run alone: copies that should have the same bits and have not.
const std::set<std::string> kAudited = {
    "replica-init",      "dropout-seed-per-rank",   "norm-unreduced",      "output-norm-partial",
    "dense-over-edp",    "last-microbatch-local",   "last-stage-unsynced", "tied-embedding-unsynced",
    "dualpipe-unmerged", "clip-first-tp-rank-only", "loss-scale-unsynced", "stale-gather",
    "bias-local-load"};

TEST(AuditOfMuseum, NamesThirteenWithoutAReferenceAndNoneFalsely) {
  for (const Exhibit* exhibit : exhibits()) {
    if (exhibit->kind == BugKind::kHang) continue;
    SCOPED_TRACE(exhibit->name);
    const std::string folder = testing::TempDir() + "audit_museum_" + exhibit->name;
    std::filesystem::remove_all(folder);
    const ExhibitFinding finding = audit_exhibit(*exhibit, world_of, folder);
    std::filesystem::remove_all(folder);
    // Two ranks of dp and of ep: either explains that each ep rank has a norm of its own.
    const bool seen = exhibit->name == std::string("norm-per-ep-group") || kAudited.contains(exhibit->name);
    EXPECT_EQ(finding.result.differs(), seen) << (seen ? "" : finding.result.wrong()->key.text());
    EXPECT_EQ(finding.module && finding.axis && finding.result.differs(), kAudited.contains(exhibit->name))
        << finding.axis_text();
  }
}

std::string name_of_case(const testing::TestParamInfo<const Exhibit*>& info) {
  std::string name = info.param->name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(All, ParityOfMuseum, testing::ValuesIn(exhibits().begin(), exhibits().end()), name_of_case);

}  // namespace
}  // namespace ranklab
