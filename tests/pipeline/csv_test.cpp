// Schedule files: round trips of both dialects, hand-written files of torch's grammar, and broken files with the
// position of the error.
#include "core/pipeline/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/pipeline/verify.h"
#include "tests/pipeline/all_schedules.h"

namespace ranklab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

ScheduleFile torch_file(const std::string& text) { return parse_schedule(text, "a.csv", ScheduleDialect::kTorch); }

TEST(ScheduleCsv, RoundTripsAreExact) {
  for (const Schedule& schedule : all_schedules({1, 2, 4}, {1, 4, 8})) {
    const ScheduleFile own =
        parse_schedule(schedule_csv(schedule, ScheduleDialect::kRanklab), "x", ScheduleDialect::kAuto);
    EXPECT_EQ(own.dialect, ScheduleDialect::kRanklab);
    EXPECT_EQ(own.schedule.name, schedule.name);
    EXPECT_EQ(own.schedule.ranks, schedule.ranks) << schedule.name;
    EXPECT_EQ(own.schedule.rank_of_stage, schedule.rank_of_stage);
    EXPECT_EQ(own.schedule.chain_length, schedule.chain_length);
    EXPECT_EQ(own.schedule.num_microbatches, schedule.num_microbatches);
    if (schedule.num_chains() > 1) {
      EXPECT_THROW(schedule_csv(schedule, ScheduleDialect::kTorch), Error) << "torch knows one chain";
      continue;
    }
    const std::string text = schedule_csv(schedule, ScheduleDialect::kTorch);
    for (const ScheduleDialect dialect : {ScheduleDialect::kTorch, ScheduleDialect::kAuto}) {
      const ScheduleFile torch = parse_schedule(text, "x", dialect);
      EXPECT_EQ(torch.dialect, ScheduleDialect::kTorch) << schedule.name;
      EXPECT_EQ(torch.schedule.ranks, schedule.ranks) << schedule.name;
      EXPECT_EQ(torch.schedule.rank_of_stage, schedule.rank_of_stage);
      EXPECT_EQ(schedule_csv(torch.schedule, ScheduleDialect::kTorch), text);
    }
  }
}

TEST(ScheduleCsv, TheLetterBFollowsTheDialect) {
  const ScheduleFile torch = torch_file("0F0,0B0,,0F1,0I1,0W1\r\n1F0, 1B0 ,\"1F1\",1B1\r\n");
  EXPECT_THAT(torch.schedule.ranks[0],
              ElementsAre(forward(0, 0), backward(0, 0), forward(0, 1), input_grad(0, 1), weight_grad(0, 1)));
  EXPECT_THAT(torch.schedule.ranks[1], ElementsAre(forward(1, 0), backward(1, 0), forward(1, 1), backward(1, 1)));
  const ScheduleFile own = parse_schedule("0F0,0B0,0W0\n", "a.csv", ScheduleDialect::kAuto);
  EXPECT_EQ(own.dialect, ScheduleDialect::kRanklab) << "W without I: B is the input gradient alone";
  EXPECT_THAT(own.schedule.ranks[0], ElementsAre(forward(0, 0), input_grad(0, 0), weight_grad(0, 0)));
  EXPECT_EQ(parse_schedule("0F0,0B0\n", "a", ScheduleDialect::kAuto).dialect, ScheduleDialect::kTorch);
  EXPECT_EQ(parse_schedule("0F0,0BW0\n", "a", ScheduleDialect::kAuto).dialect, ScheduleDialect::kRanklab);
  EXPECT_EQ(parse_schedule("# mine\n0F0,0BW0\n", "a", ScheduleDialect::kAuto).schedule.ranks.size(), 1u);
}

TEST(ScheduleCsv, OverlappedPairsInBothDialects) {
  const Schedule schedule = make_schedule("dualpipe-v", {2, 4, 1});
  EXPECT_THAT(schedule_csv(schedule, ScheduleDialect::kTorch), HasSubstr(",(0F3;3B1)OVERLAP_F_B,"));
  EXPECT_THAT(schedule_csv(schedule, ScheduleDialect::kRanklab), HasSubstr(",0F3&3BW1,"));
}

constexpr const char* kWithMessages =
    "0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD,0RESHARD\n"
    "1RECV_F0,1F0,1B0,1SEND_B0\n";

TEST(ScheduleCsv, MessagesAreMatchedAndDropped) {
  const ScheduleFile file = torch_file(kWithMessages);
  EXPECT_EQ(file.messages, 4);
  EXPECT_THAT(file.message_problems, IsEmpty());
  EXPECT_THAT(file.schedule.ranks[0], ElementsAre(forward(0, 0), backward(0, 0)));
  EXPECT_THAT(verify_schedule(file.schedule).problems, IsEmpty());
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

TEST(ScheduleCsv, WrongMessagesAreNamedByRowAndColumn) {
  const auto problems = [](const std::string& from, const std::string& to) {
    return torch_file(replaced(kWithMessages, from, to)).message_problems;
  };
  EXPECT_THAT(problems("1RECV_F0", ""), ElementsAre("row 1 (rank 0), column 3: 0SEND_F0: nobody receives it; want "
                                                    "1RECV_F0 on rank 1"));
  EXPECT_THAT(problems("1SEND_B0", ""), ElementsAre("row 1 (rank 0), column 4: 0RECV_B0: nobody sends it; want "
                                                    "1SEND_B0 on rank 1"));
  EXPECT_THAT(problems("1SEND_B0", "1SEND_B0,1SEND_B0"),
              ElementsAre(HasSubstr("row 2 (rank 1), column 5: 1SEND_B0: twice, first in row 2 (rank 1), column 4")));
  EXPECT_THAT(problems("0F0,0SEND_F0", "0SEND_F0,0F0"), ElementsAre(HasSubstr("column 2: 0SEND_F0: sent before 0F0")));
  EXPECT_THAT(problems("1RECV_F0,1F0", "1F0,1RECV_F0"),
              ElementsAre(HasSubstr("column 2: 1RECV_F0: received after 1F0")));
  EXPECT_THAT(problems("1SEND_B0", "1SEND_B0,0SEND_F0"), ElementsAre(HasSubstr("stage 0 lies on rank 0")));
  EXPECT_THAT(problems("1SEND_B0", "1SEND_B0,1SEND_F0"), ElementsAre(HasSubstr("there is no stage 2")));
  EXPECT_THAT(problems("1SEND_B0", "1SEND_B0,7SEND_F0"), ElementsAre(HasSubstr("no rank computes stage 7")));
  EXPECT_THAT(torch_file(replaced(replaced(kWithMessages, "1SEND_B0", ""), "0RECV_B0,", "")).message_problems,
              ElementsAre("rank 1 never sends 1SEND_B0 to rank 0"));
}

void expect_bad(const std::string& text, ScheduleDialect dialect, const std::vector<std::string>& parts) {
  try {
    parse_schedule(text, "a.csv", dialect);
    ADD_FAILURE() << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadFile);
    EXPECT_THAT(error.what(), HasSubstr("a.csv"));
    for (const std::string& part : parts) EXPECT_THAT(error.what(), HasSubstr(part)) << text;
  }
}

TEST(ScheduleCsv, BrokenFilesAreRefusedByPlace) {
  const ScheduleDialect torch = ScheduleDialect::kTorch, own = ScheduleDialect::kRanklab;
  expect_bad("", torch, {"no actions"});
  expect_bad("\n\n", own, {"no actions"});
  expect_bad("# ranklab: name=x chain=1\n", own, {"no actions"});
  for (const char* cell : {"F0",
                           "0F",
                           "0",
                           "x",
                           "0X0",
                           "0F0F",
                           "-1F0",
                           "0F-1",
                           "0F99999",
                           "99999F0",
                           "0FB0",
                           "0 F0",
                           "0BW0",
                           "0F0&0BW0",
                           "(0F0)OVERLAP_F_B",
                           "(0F0;0I0)OVERLAP_F_B",
                           "(0B0;0F0)OVERLAP_F_B",
                           "(0F0;0B0;0W0)OVERLAP_F_B",
                           "(0F0;0B0)",
                           "(0F0;0B0)OVERLAP_F_B2",
                           "0SEND_F",
                           "0SEND_X0"})
    expect_bad(std::string("0F0,0B0\n1F0,") + cell + "\n", torch, {"row 2 (rank 1), column 2", cell});
  for (const char* cell : {"0I0", "0F0&0B0", "0F0&", "&0BW0", "(0F0;0B0)OVERLAP_F_B", "0SEND_F0", "0UNSHARD"})
    expect_bad(std::string("# note\n0F0,") + cell + "\n", own, {"row 2 (rank 0), column 2", cell});
  expect_bad("0F0,0B0\n\n1F0,1B0\n", torch, {"a rank has no actions", "rank 1"});
  expect_bad("0F0,0SEND_F0,0B0\n1RECV_F0\n", torch, {"a rank has no actions", "rank 1"});
  expect_bad("0F0,0B0\n2F0,2B0\n", torch, {"a stage is in no row", "stage 1"});
  expect_bad("# ranklab: name=x chain=3\n0F0,0BW0\n1F0,1BW0\n", own, {"chain=3, 2 stages"});
  expect_bad("# ranklab: chain=0\n0F0,0BW0\n", own, {"row 1 is not a header", "chain=0"});
  expect_bad("# ranklab: color=red\n0F0\n", own, {"row 1 is not a header", "color=red"});
  expect_bad(std::string("0F0,0\0B0\n", 9), torch, {"column 2", "0?B0"});
  std::string rows;
  for (int i = 0; i < 1025; ++i) rows += "0F0\n";
  expect_bad(rows, torch, {"too many rows", "1024"});
}

TEST(ScheduleCsv, ARowOfAnotherRanksStageIsTheVerifiersMatter) {
  const ScheduleFile file = torch_file("0F0,0B0\n1F0,1B0,0F1\n");
  EXPECT_THAT(verify_schedule(file.schedule).problems,
              testing::Contains(HasSubstr("rank 1 runs 0F1, but stage 0 lies on rank 0")));
}

TEST(ScheduleCsv, FilesAreWrittenWholeAndReadByName) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "ranklab_schedule_csv";
  std::filesystem::create_directories(folder);
  const Schedule schedule = make_schedule("zb-h1", {2, 3, 1});
  const std::string path = (folder / "mine.csv").string();
  write_schedule(schedule, path, ScheduleDialect::kTorch);
  EXPECT_EQ(read_schedule(path, ScheduleDialect::kAuto).schedule.name, "mine");
  write_schedule(schedule, path, ScheduleDialect::kRanklab);
  EXPECT_EQ(read_schedule(path, ScheduleDialect::kAuto).schedule.name, "zb-h1");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1) << "nothing beside the file";
  EXPECT_THROW(write_schedule(schedule, (folder / "no" / "x.csv").string(), ScheduleDialect::kTorch), Error);
  EXPECT_THROW(read_schedule((folder / "absent.csv").string(), ScheduleDialect::kAuto), Error);
  EXPECT_THROW(schedule_dialect("pytorch"), Error);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace ranklab
