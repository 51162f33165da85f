#include "core/museum/exhibits/exhibits.h"

namespace ranklab::museum {

const Exhibit resume_without_sampler = {
    .name = "resume-without-sampler",
    .bug = InjectedBug::kResumeRestartsData,
    .kind = BugKind::kLostState,
    .title = "a resumed run restarts the data from the beginning",
    .what_happened =
        "Model and optimizer are in the checkpoint, the position in the data is not: the resumed run trains "
        "on what it has seen. In entrenar a run resumed at step 25,000 read its first shards again; "
        "validation perplexity kept improving, on data seen twice, until at step 50,662 the loader came to "
        "new data and perplexity went from 251 to 782, so that 40 % of the planned training was lost. "
        "Accelerate had a smaller relative of it, where a resumed loader went back to the order of epoch 0. "
        "Here the checkpoint has the position, and with the bug it is not used.",
    .citation = "entrenar issue 294 (March 2026); Hugging Face Accelerate pull request 4071 (June 2026)",
    .url = "https://github.com/paiml/entrenar/issues/294",
    .flags = "--dp 2 --load {folder}",
    .look_for = "the batch of the first step after loading is the batch of step 0",
    .guilty_module = "batch",
    .guilty_axis = "none",
    .before = "--dp 2 --train-iters 20 --save {folder}"};

}  // namespace ranklab::museum
