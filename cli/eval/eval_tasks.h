// Multiple-choice tasks as the LM Evaluation Harness states them, a JSON object a line: "query" or "question" (or
// "context"), "choices", and the right one as "gold" or "answer" (or "label"): its place from 0, its letter, or its
// text. Thread rule: one thread.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ranklab {

struct ChoiceTask {
  std::string query;
  std::vector<std::string> choices;
  size_t gold = 0;
  int64_t line = 0;  // of the file
};

// Throws kIo, kBadFile naming the line: no JSON, no query, no or empty choices, no such answer; also for a file without
// tasks.
std::vector<ChoiceTask> read_choice_tasks(const std::string& path);

struct TaskAnswer {
  std::vector<double> log_likelihood = {};  // of each choice
  size_t chosen = 0;                        // the likeliest one
  size_t chosen_by_byte = 0;                // the likeliest one by byte of its text: acc_norm
};
// The first of equally likely ones.
TaskAnswer answer_of(const ChoiceTask& task, std::span<const double> log_likelihood);

// A share of correct answers with the standard error of the mean of so many zeros and ones (n - 1), as the harness has
// it; 0 of one task.
struct Accuracy {
  double share = 0, error = 0;
};
Accuracy accuracy_of(size_t correct, size_t tasks);

}  // namespace ranklab
