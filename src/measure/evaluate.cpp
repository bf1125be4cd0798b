// SPDX-License-Identifier: Apache-2.0
#include "measure/evaluate.hpp"

#include <fmt/format.h>

#include <fstream>
#include <limits>
#include <numeric>

#include "common/outside.hpp"
#include "common/python.hpp"
#include "common/scratch_folder.hpp"
#include "common/temporary.hpp"
#include "worker/answers.hpp"

namespace strata::measure {
namespace fs = std::filesystem;
namespace {

// `python -m evaluation WHAT`; its last line, or why there is none.
Try<Json> ask(const char* what, const ScoreFile& score, const fs::path& bundle, const fs::path& folder,
              const Installation& place, const std::string& python, std::chrono::milliseconds timeout) {
  worker::Launch launch;
  launch.argv = python_command(python, place.root,
                               {"-m", "evaluation", what, "--file", score.path.string(), "--function", score.function,
                                "--bundle", bundle.string(), "--out", folder.string()});
  launch.env = python_variables({place.root / "src", place.root / "sdk/python"});
  launch.env["STRATA_OVERLAY"] = place.overlay;
  if (const auto temporary = temporary_folder(place.cache)) launch.env["TMPDIR"] = *temporary;
  launch.log_path = (folder / fmt::format("{}.log", what)).string();
  const auto ran = STRATA_TRY(worker::run_to_end(launch, timeout));
  auto answer = worker::last_line(ran);
  const bool ok = outside::flag_or(answer, "ok", false);
  if (ok) return answer;
  if (const auto message = outside::text_or(answer, "what"); !message.empty())
    return tl::unexpected(
        Failure{.state = outside::text_or(answer, "code") == "usage" ? State::unsupported : State::failed,
                .what = message,
                .hint = outside::text_or(answer, "hint"),
                .log_tail = ran.log_tail});
  if (ran.timed_out)
    return tl::unexpected(Failure{.state = State::timeout,
                                  .what = fmt::format("--eval: {}() of {} took longer than {} s",
                                                      std::string(what) == "score" ? score.function : "inputs",
                                                      score.path.filename().string(), timeout.count() / 1000),
                                  .hint = "raise --timeout, or score fewer examples",
                                  .log_tail = ran.log_tail});
  const auto how = ran.signal ? fmt::format("was killed by signal {}", *ran.signal)
                              : fmt::format("ended with exit code {}", ran.exit_code);
  return tl::unexpected(Failure{.state = ran.signal ? State::crashed : State::failed,
                                .what = fmt::format("--eval: calling {} {}", score.path.filename().string(), how),
                                .hint = "run the file with python",
                                .log_tail = ran.log_tail});
}

fs::path inputs_file(const fs::path& folder, std::size_t chunk) {
  return folder / fmt::format("inputs-{}.safetensors", chunk);
}

// What the level makes of every input, as files beside these.
Try<void> run_all(const Participant& participant, const Evaluation& evaluation) {
  auto opened = STRATA_TRY(Session::open(participant.job, {}));
  STRATA_TRY(opened->load("timed"));
  for (std::size_t chunk = 0; chunk < evaluation.chunks.size(); ++chunk) {
    STRATA_TRY(opened->inputs(inputs_file(*evaluation.folder, chunk), evaluation.chunks[chunk]));
    std::vector<int> all(static_cast<std::size_t>(evaluation.chunks[chunk]));
    std::iota(all.begin(), all.end(), 0);
    STRATA_TRY(opened->prove_into(all, *evaluation.folder / fmt::format("outputs-{}.safetensors", chunk)));
  }
  opened->end();
  return {};
}

}  // namespace

Result<ScoreFile> score_file(const std::string& text) {
  const auto colon = text.rfind(':');
  const auto form = "write it as path/to/file.py:score, where the file has inputs() and score(outputs)";
  if (colon == std::string::npos || colon + 1 == text.size() || !text.substr(0, colon).ends_with(".py"))
    return fail(fmt::format("--eval {}: the file or the function is missing", text), form, Exit::usage);
  std::error_code ec;
  const fs::path path = text.substr(0, colon);
  if (!fs::is_regular_file(path, ec))
    return fail(fmt::format("--eval {}: there is no such file", path.string()), "check the path", Exit::usage);
  return ScoreFile{fs::absolute(path, ec).lexically_normal(), text.substr(colon + 1)};
}

namespace {

tl::unexpected<Error> error_of(const Failure& why) {
  const bool named = why.state == State::unsupported || why.log_tail.empty();
  return fail(named ? why.what : fmt::format("{}\n{}", why.what, why.log_tail), why.hint,
              why.state == State::unsupported ? Exit::usage : Exit::failed);
}

}  // namespace

Result<void> check_score(const ScoreFile& score, const Installation& place, const std::string& python,
                         std::chrono::milliseconds timeout) {
  const ScratchFolder scratch("eval");
  const auto answer = ask("check", score, scratch.path(), scratch.path(), place, python, timeout);
  if (!answer) return error_of(answer.error());
  return {};
}

Result<Evaluation> begin_evaluation(const ScoreFile& score, const plan::Bundle& bundle, const Installation& place,
                                    const plan::Environment& environment, const fs::path& folder,
                                    std::chrono::milliseconds timeout) {
  std::error_code ec;
  fs::create_directories(folder, ec);
  if (ec)
    return fail(fmt::format("cannot make the folder {}: {}", folder.string(), ec.message()),
                "free some space, or name another store with --store PATH");
  Evaluation result;
  result.score = score;
  result.timeout = timeout;
  result.folder = std::shared_ptr<const fs::path>(new fs::path(folder), [](const fs::path* path) {
    std::error_code ignored;
    fs::remove_all(*path, ignored);
    delete path;
  });
  const auto answer = ask("inputs", score, bundle.folder, folder, place, environment.python, timeout);
  if (!answer) return error_of(answer.error());
  outside::Fields reader(*answer, fmt::format("--eval {}: what inputs() gave", score.path.filename().string()));
  result.count = reader.integer("count", 0, std::numeric_limits<int>::max());
  for (const auto size : reader.integers("chunks", std::nullopt, 1, std::numeric_limits<int>::max()))
    result.chunks.push_back(static_cast<int>(size));
  if (reader.error()) return tl::unexpected(*reader.error());
  std::ofstream(folder / "inputs.json") << answer->dump() << '\n';
  return result;
}

store::ScoreRecord evaluate(const Participant& participant, const Evaluation& evaluation, const Installation& place,
                            const plan::Environment& environment) {
  const auto failed = [&](const Failure& why) {
    return store::ScoreRecord{
        .state = std::string(to_string(why.state == State::unsupported ? State::failed : why.state)),
        .reason = why.what,
        .hint = why.hint,
        .count = evaluation.count};
  };
  if (const auto ran = run_all(participant, evaluation); !ran) return failed(ran.error());
  const auto answer = ask("score", evaluation.score, participant.job.bundle->folder, *evaluation.folder, place,
                          environment.python, evaluation.timeout);
  if (!answer) return failed(answer.error());
  auto score = store::read_score(*answer);
  if (!score) return failed({.state = State::failed, .what = "--eval: " + score.error().what});
  score->state = "scored";
  return std::move(*score);
}

}  // namespace strata::measure
