#include "lessons/lesson_list.h"

#include <array>
#include <cstdlib>
#include <system_error>

#include "core/base/error.h"
#include "core/base/files/input_file.h"
#include "core/base/system.h"
#include "core/base/text.h"

namespace ranklab::lesson {

LessonPtr make_what_is_a_rank();
LessonPtr make_all_reduce();
LessonPtr make_replicas_stay_equal();
LessonPtr make_split_matmul();
LessonPtr make_why_pipelines_idle();
LessonPtr make_can_the_bubble_shrink();
LessonPtr make_who_talks_to_whom_in_moe();
LessonPtr make_where_does_memory_go();
LessonPtr make_can_compute_buy_memory();
LessonPtr make_who_owns_what_in_zero();
LessonPtr make_what_do_8_bits_lose();
LessonPtr make_can_4_bits_train();
LessonPtr make_split_a_long_sequence();
LessonPtr make_choose_a_layout();
LessonPtr make_find_the_wrong_reduction();
LessonPtr make_who_is_missing();
LessonPtr make_who_is_slow();
LessonPtr make_which_copies_drift();
LessonPtr make_how_rarely_may_replicas_talk();

namespace {

const auto kLessons = std::to_array<LessonRow>({
    {0, "what_is_a_rank", "What is a rank?", make_what_is_a_rank},
    {1, "all_reduce", "What does an all-reduce cost?", make_all_reduce},
    {2, "replicas_stay_equal", "Why do 8 replicas stay equal?", make_replicas_stay_equal},
    {3, "split_matmul", "How is one matmul split?", make_split_matmul},
    {4, "why_pipelines_idle", "Why do pipelines idle?", make_why_pipelines_idle},
    {5, "can_the_bubble_shrink", "Can the bubble shrink?", make_can_the_bubble_shrink},
    {6, "who_talks_to_whom_in_moe", "Who talks to whom in a mixture of experts?", make_who_talks_to_whom_in_moe},
    {7, "where_does_memory_go", "Where does memory go?", make_where_does_memory_go},
    {8, "can_compute_buy_memory", "Can compute buy memory?", make_can_compute_buy_memory},
    {9, "who_owns_what_in_zero", "Who owns what in ZeRO?", make_who_owns_what_in_zero},
    {10, "what_do_8_bits_lose", "What do 8 bits lose?", make_what_do_8_bits_lose},
    {11, "can_4_bits_train", "Can 4 bits train?", make_can_4_bits_train},
    {12, "split_a_long_sequence", "How to split a long sequence?", make_split_a_long_sequence},
    {13, "choose_a_layout", "Which layout for 70B on 512 GPUs?", make_choose_a_layout},
    {14, "find_the_wrong_reduction", "Which reduction is wrong?", make_find_the_wrong_reduction},
    {15, "who_is_missing", "Who never came?", make_who_is_missing},
    {16, "who_is_slow", "Who holds everybody up?", make_who_is_slow},
    {17, "which_copies_drift", "Which copies drift?", make_which_copies_drift},
    {18, "how_rarely_may_replicas_talk", "How rarely may replicas talk?", make_how_rarely_may_replicas_talk},
});

}  // namespace

std::string LessonRow::folder_name() const { return strprintf("%02d_", number) + slug; }
std::filesystem::path LessonRow::folder() const { return lesson_root() / folder_name(); }

std::span<const LessonRow> lesson_list() { return kLessons; }

const LessonRow& find_lesson(const std::string& number_or_slug) {
  std::vector<std::string> slugs;
  for (const LessonRow& row : kLessons) {
    if (number_or_slug == row.slug || number_or_slug == row.folder_name() ||
        number_or_slug == std::to_string(row.number)) {
      return row;
    }
    slugs.push_back(row.slug);
  }
  const std::string nearest = nearest_name(number_or_slug, slugs);
  throw Error(ErrorKind::kInvalidArgument,
              {.where = "lesson",
               .what = "there is no such lesson",
               .got = quote(number_or_slug),
               .want = "a number from 0 to " + std::to_string(kLessons.back().number) + ", or a name",
               .fix = nearest.empty() ? "see `ranklab lesson list`" : "did you mean " + quote(nearest) + "?"});
}

std::filesystem::path lesson_root() {
  if (const char* set = std::getenv("RANKLAB_LESSON_DIR"); set != nullptr && *set != '\0') return set;
  std::error_code error;
  const std::filesystem::path installed = program_path().parent_path().parent_path() / "share/ranklab/lessons";
  if (std::filesystem::is_directory(installed, error)) return installed;
  return RANKLAB_LESSON_SOURCE_DIR;
}

std::string read_text(const std::filesystem::path& path) {
  constexpr uint64_t kMostBytes = 16 << 20;
  return read_whole_file(
      path.string(), kMostBytes,
      {.where = "lesson", .fix = "check that it exists; RANKLAB_LESSON_DIR names the folder of the lessons"});
}

}  // namespace ranklab::lesson
