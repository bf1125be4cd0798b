// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>

#include "analysis/result_json.hpp"
#include "common/write_whole.hpp"
#include "report/access.hpp"
#include "report/compare.hpp"
#include "report/first_screen.hpp"
#include "report/ledger_tree.hpp"
#include "report/render/render.hpp"
#include "report/render_file.hpp"
#include "report/terminal.hpp"
#include "unit/read_result.hpp"

namespace strata::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

analysis::RunResult example() {
  return read_results(fs::path(STRATA_SOURCE_DIR) / "tests/report/example_run.json").value().at(0);
}

std::string markdown(const analysis::RunResult& run) {
  return document::render_markdown(compare_document({run}));
}

// A run with that case alone, without what an option adds below the first screen.
analysis::RunResult one_case(std::size_t index) {
  auto run = example();
  run.cases = {run.cases.at(index)};
  run.accuracy.clear();
  run.cases[0].slo.reset();
  for (auto& row : run.cases[0].rows) row.clients.reset(), row.dynamic.reset(), row.profile.reset();
  return run;
}

analysis::RunResult first_case_alone() {
  return one_case(0);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

class Scratch {
 public:
  Scratch() : path(fs::temp_directory_path() / ("strata_report_test_" + std::to_string(getpid()))) {
    fs::create_directories(path);
  }
  ~Scratch() { fs::remove_all(path); }
  fs::path file(const std::string& name, const std::string& content) const {
    std::ofstream(path / name) << content;
    return path / name;
  }
  fs::path path;
};

TEST(report_terminal, fits_nine_levels_into_24_lines_from_80_columns_on) {
  for (const int width : {80, 100, 120, 200}) {
    const auto lines = lines_of(terminal(first_case_alone(), {width, false, true}));
    EXPECT_LE(lines.size(), 24U) << width;
    for (const auto& line : lines) EXPECT_LE(width_of(line), static_cast<std::size_t>(width)) << line;
  }
}

TEST(report_terminal, fits_eight_levels_without_a_number_into_24_lines) {
  EXPECT_LE(lines_of(terminal(one_case(1), {80, false, true})).size(), 24U);
}

TEST(report_terminal, fits_all_that_options_add_into_80_columns) {
  auto run = example();
  run.cases.resize(1);
  const auto shown = terminal(run, {80, false, true});
  for (const auto& line : lines_of(shown)) EXPECT_LE(width_of(line), 80U) << line;
  for (const char* part : {"Accuracy against speed", "4 of 10,000", "openvino in bf16: failed: score()",
                           "openvino: unequal: batch 4", "4 clients"})
    EXPECT_THAT(shown, HasSubstr(part));
}

TEST(report_terminal, shows_no_number_with_more_than_two_decimals) {
  const auto shown = terminal(first_case_alone(), {100, false, true});
  const auto without_versions = std::regex_replace(shown, std::regex("PyTorch [0-9.]+"), "");
  EXPECT_FALSE(std::regex_search(without_versions, std::regex("[0-9]\\.[0-9]{3}"))) << shown;
}

TEST(report_terminal, says_everything_that_the_first_screen_must_say) {
  const auto shown = terminal(first_case_alone(), {120, false, true});
  for (const char* part : {"Move to onnxruntime (a peer)", "resnet50/infer/b1/3x224x224/fp32/cpu/t2", "warm start",
                           "9 observed, 3 reported", "inconclusive", "Roofline", "341 GFLOP/s",
                           "process effect at least 3% (assumed)", "smallest visible effect 5.5%",
                           "12 of 432 blocks disturbed", "0 of 7 false alarms", "Next", "--preset thorough"})
    EXPECT_THAT(shown, HasSubstr(part));
}

TEST(report_terminal, calls_a_limit_what_it_is_and_prints_none_where_nothing_is_bounded) {
  auto run = first_case_alone();
  auto& limits = run.cases[0].limits.value();
  limits.kind = "bound";
  limits.memory_bytes = 80e6;
  for (const auto& shown : {terminal(run, {120, false, true}), markdown(run)}) {
    EXPECT_THAT(shown, HasSubstr("Limit"));
    EXPECT_THAT(shown, HasSubstr("14.2 GB/s for the 80.0 MB that no cache holds"));
  }
  limits.kind.clear(), limits.limit_ms.reset();
  for (const auto& shown :
       {terminal(run, {120, false, true}), markdown(run), terminal_ledger(run, {120, false, true})}) {
    EXPECT_THAT(shown, Not(HasSubstr("Limit")));
    EXPECT_THAT(shown, Not(HasSubstr("Roofline")));
  }
}

TEST(report_terminal, says_what_levels_are_and_what_the_words_of_their_proof_mean_where_there_is_room) {
  auto run = first_case_alone();
  auto& rows = run.cases[0].rows;
  const auto names = [&] { return terminal(run, {400, false, true}); };
  rows.erase(rows.begin() + 3, rows.end());
  EXPECT_THAT(names(), HasSubstr("Levels   eager: PyTorch eager; compile: torch.compile"));
  EXPECT_THAT(names(), HasSubstr("how many lines of the certificate strata observed, and how many the level itself"));
  EXPECT_THAT(names(), Not(HasSubstr("weak")));
  rows[1].proof->weak = true;
  run.warnings.push_back({.id = "W004", .what = "outputs hardly vary", .advice = "do this"});
  EXPECT_THAT(names(), HasSubstr("weak: a fault could stay unseen (outputs hardly vary): do this"));
}

TEST(report_document, says_under_its_tables_what_levels_states_and_proofs_are_of_those_that_are_there) {
  auto run = first_case_alone();
  const auto shown = markdown(run);
  EXPECT_THAT(shown, HasSubstr("What the levels are:"));
  EXPECT_THAT(shown, HasSubstr("- eager: PyTorch eager"));
  EXPECT_THAT(shown, Not(HasSubstr("mistrusted:")));
  run.cases[0].rows[1].state = State::mistrusted;
  EXPECT_THAT(markdown(run), HasSubstr("mistrusted: what it tells of its times, inputs or threads does not hold"));
  EXPECT_THAT(markdown(run), Not(HasSubstr("- compile: torch.compile"))) << "it is in the table no more";
}

TEST(report_document, says_first_that_levels_of_other_authors_agree_where_they_are_all_refused) {
  auto run = first_case_alone();
  run.warnings.push_back({.id = "W012", .what = "a and b agree", .advice = "run --deep"});
  for (const auto& shown : {terminal(run, {200, false, true}), markdown(run)})
    EXPECT_THAT(shown, testing::ContainsRegex("Doubt:? +a and b agree \\(run .?--deep\\)"));
  run.warnings.back().case_key = "another";
  EXPECT_THAT(terminal(run, {200, false, true}), Not(HasSubstr("Doubt")));
}

TEST(report_terminal, says_which_operations_are_not_counted) {
  auto run = first_case_alone();
  auto& one = run.cases[0];
  const auto expect = [&](analysis::OptionalNumber flops, const std::vector<std::string>& uncounted,
                          const std::string& part) {
    one.flops = flops;
    one.flops_uncounted = uncounted;
    for (const auto& shown : {terminal(run, {200, false, true}), markdown(run)}) EXPECT_THAT(shown, HasSubstr(part));
  };
  expect(3277312.0, {}, " parameters, 3.28 MFLOP");
  expect(3277312.0, {"cdist", "nms (3 calls)"}, "3.28 MFLOP without cdist, nms (3 calls)");
  expect(512.0, {"a", "b", "c", "d", "e"}, "512 FLOP without a, b, c and 2 more");
  expect({}, {}, " parameters, operations not counted");
  expect(0.0, {"cdist"}, " parameters, operations not counted");
  expect(0.0, {}, " parameters, 0 FLOP");
}

TEST(report_terminal, recommends_nothing_in_any_form_where_the_case_is_not_reliable) {
  auto run = first_case_alone();
  auto& one = run.cases[0];
  one.trust.reliable = one.trust.one_thread_fits = false;
  one.trust.others_begin_percent = 100;
  one.headline.reset();
  one.next_command = "./strata compare resnet50";
  for (const auto& shown : {terminal(run, {120, false, true}), markdown(run)}) {
    EXPECT_THAT(shown, HasSubstr("Not reliable: other programs use 100% of this machine; measure on an idle machine."));
    EXPECT_THAT(shown, Not(testing::AnyOf(HasSubstr("Move to"), HasSubstr("recommended"), HasSubstr("> onnx"))));
  }
}

TEST(report_terminal, says_too_noisy_instead_of_an_absurd_percentage) {
  auto run = first_case_alone();
  run.cases[0].trust.smallest_visible_percent = 86169.28;
  EXPECT_THAT(terminal(run, {120, false, true}), HasSubstr("too noisy to compare"));
  EXPECT_THAT(terminal(run, {120, false, true}), Not(HasSubstr("86169")));
}

TEST(report_terminal, names_the_level_that_sees_only_multiples_where_the_others_see_more) {
  auto run = first_case_alone();
  auto& one = run.cases[0];
  one.trust.smallest_visible_percent = 130;
  one.rows[1].ratio->smallest_visible_percent = 130;
  EXPECT_THAT(terminal(run, {200, false, true}), HasSubstr("smallest visible effect 5.5%, of compile more than 100%"));
}

TEST(report_terminal, says_of_a_score_that_it_is_a_difference_and_to_what) {
  auto run = example();
  auto& difference = run.accuracy[0].points[1].eval->difference;
  difference = {0, -0.07, 0.07};
  EXPECT_THAT(terminal(run, {200, false, true}), HasSubstr("score +0 against eager (99%: -0.07 to +0.07)"));
  difference = {-0.5, {}, {}};
  EXPECT_THAT(markdown(run), HasSubstr("score -0.5 against eager,"));
}

TEST(report_terminal, marks_verdicts_by_signs_where_words_do_not_fit) {
  const auto narrow = terminal(first_case_alone(), {80, false, true});
  EXPECT_THAT(narrow, HasSubstr("~1.03"));
  EXPECT_THAT(narrow, HasSubstr("~ inconclusive"));
}

TEST(report_terminal, writes_ascii_alone_when_asked_and_escape_codes_only_in_colour) {
  const auto plain = terminal(example(), {100, false, false}) + terminal_ledger(example(), {100, false, false});
  EXPECT_TRUE(std::all_of(plain.begin(), plain.end(),
                          [](char c) { return static_cast<unsigned char>(c) < 0x80 && c != '\x1b'; }));
  EXPECT_THAT(terminal(example(), {100, true, true}), HasSubstr("\x1b["));
}

TEST(report_terminal, does_not_let_a_name_steer_the_terminal) {
  auto run = first_case_alone();
  run.cases[0].rows[1].level = "evil\x1b[2J\nlevel";
  EXPECT_THAT(terminal(run, {100, false, true}), Not(HasSubstr("\x1b")));
  EXPECT_THAT(terminal_certificate(run, {}), Not(HasSubstr("\x1b")));
}

TEST(report_terminal, gives_each_row_without_a_number_its_state_and_its_reason) {
  const auto run = example();
  const auto screen = first_screen(run, run.cases[1], glyphs(true));
  ASSERT_EQ(screen.without.size(), 8U);
  EXPECT_EQ(screen.without[0].state, "out of memory");
  EXPECT_FALSE(screen.without[0].not_run);
  EXPECT_TRUE(screen.without[7].not_run) << "those that failed come first";
}

TEST(report_terminal, cuts_no_reason_and_names_the_levels_of_one_reason_together) {
  auto run = one_case(1);
  const std::string reason = "no operation gru (gru, rnn.py:11 and 2 more), lstm (lstm, rnn.py:10)";
  for (auto& row : run.cases[0].rows)
    if (row.level == "libtorch" || row.level == "aoti" || row.level == "torchscript") {
      row.state = row.level == "torchscript" ? State::failed : State::unsupported;
      row.reason = reason, row.reason_short.clear();
    }
  EXPECT_THAT(terminal(run, {120, false, true}), HasSubstr("Not run  aoti, libtorch - unsupported: " + reason + "\n"));
  EXPECT_THAT(terminal(run, {120, false, true}), HasSubstr("torchscript - failed: " + reason + "\n"));
  EXPECT_THAT(markdown(run), HasSubstr("| aoti, libtorch | unsupported | " + reason + " |\n"));
}

TEST(report_terminal, says_what_the_first_call_of_a_size_took_longer_where_it_compiled_again) {
  auto run = example();
  run.cases.resize(1);
  EXPECT_THAT(terminal(run, {100, false, true}), HasSubstr("where it compiled again"));
  for (auto& row : run.cases[0].rows) row.dynamic.reset();
  EXPECT_THAT(terminal(run, {100, false, true}), Not(HasSubstr("compiled again")));
}

TEST(report_terminal, marks_no_ratio_that_is_missing) {
  auto run = one_case(2);
  const auto forget = [](std::optional<analysis::Ratio>& ratio) {
    if (!ratio || ratio->verdict == analysis::RatioVerdict::reference) return;
    ratio->value = ratio->low = ratio->high = std::nullopt;
    ratio->verdict = analysis::RatioVerdict::inconclusive;
  };
  for (auto& row : run.cases[0].rows) {
    forget(row.ratio);
    if (row.tuned) forget(row.tuned->ratio);
  }
  for (const int width : {60, 80, 200})
    EXPECT_THAT(terminal(run, {width, false, true}) + markdown(run),
                Not(testing::AnyOf(HasSubstr("~–"), HasSubstr("~-"))));
}

TEST(report_tuning, every_output_shows_what_was_tried_with_times_states_and_reasons) {
  const auto run = one_case(2);
  const auto text = terminal(run, {100, false, true}), page = markdown(run);
  for (const auto& shown : {text, page})
    for (const char* part : {"eager@fused (best)", "262 ms", "eager@channels_last", "unequal: a gradient differs",
                             "libtorch: no variants"})
      EXPECT_THAT(shown, HasSubstr(part));
  EXPECT_THAT(page, HasSubstr("the optimiser's update in one kernel"));
  EXPECT_THAT(page, HasSubstr("Each level had 8.00 s in 2 restarts"));
  EXPECT_THAT(terminal(first_case_alone(), {100, false, true}), Not(HasSubstr("tried")));
}

TEST(report_accuracy, compares_no_time_of_a_mode_that_was_measured_beside_other_programs) {
  auto run = example();
  for (auto& point : run.accuracy[0].points)
    if (point.precision == "bf16") point.reliable = false, point.ratio.reset();
  for (const auto& shown : {terminal(run, {200, false, true}), markdown(run)}) {
    EXPECT_THAT(shown, HasSubstr("The times in bf16 are not reliable and not compared"));
    EXPECT_THAT(shown, HasSubstr("eager in bf16: score"));
  }
}

TEST(report_terminal, survives_results_in_which_everything_is_missing) {
  const TerminalStyle style;
  for (const auto& run : {analysis::RunResult(), analysis::RunResult{.cases = {{}}},
                          analysis::RunResult{.cases = {{.rows = {{}, {}}}}}}) {
    EXPECT_FALSE(terminal(run, style).empty());
    EXPECT_FALSE(terminal_ledger(run, style).empty());
    EXPECT_FALSE(terminal_certificate(run, {}).empty());
    EXPECT_FALSE(markdown(run).empty());
    EXPECT_FALSE(csv(run).empty());
    EXPECT_THAT(terminal(run, style) + markdown(run), Not(testing::AnyOf(HasSubstr("null"), HasSubstr("nan"))));
  }
}

TEST(report_ledger, hangs_each_level_below_the_one_it_comes_from) {
  std::vector<const analysis::LedgerEdge*> others;
  const auto run = example();
  const auto nodes = ledger_nodes(run.cases[0], others);
  std::vector<std::string> order;
  for (const auto& node : nodes) order.push_back(std::to_string(node.depth) + node.name);
  EXPECT_EQ(order, (std::vector<std::string>{"0eager", "1compile", "2aoti", "1torchscript", "1libtorch", "1onnxruntime",
                                             "1openvino"}));
  EXPECT_TRUE(others.empty());
}

TEST(report_ledger, places_a_cycle_and_a_second_way_in_once) {
  const analysis::CaseResult tangled{
      .ledger = {.edges = {{.from = "a", .to = "b"}, {.from = "b", .to = "a"}, {.from = "c", .to = "b"}}}};
  std::vector<const analysis::LedgerEdge*> others;
  EXPECT_EQ(ledger_nodes(tangled, others).size(), 3U);
  EXPECT_EQ(others.size(), 1U);
}

TEST(report_ledger, attributes_nothing_to_peers_and_to_edges_that_differ_in_more) {
  const auto shown = terminal_ledger(first_case_alone(), {140, false, true});
  for (const auto& line : lines_of(shown)) {
    if (line.find("torchscript") != std::string::npos) {
      EXPECT_THAT(line, HasSubstr("differs in freezing"));
      EXPECT_THAT(line, Not(HasSubstr(" to ")));
    }
    if (line.find("onnxruntime") != std::string::npos) {
      EXPECT_THAT(line, Not(HasSubstr("ms (")));
    }
    if (line.find("compile") != std::string::npos) {
      EXPECT_THAT(line, HasSubstr("ms ("));
    }
  }
}

TEST(report_ledger, fits_a_narrow_terminal_and_keeps_every_cause_and_interval) {
  for (const int width : {60, 80, 100}) {
    const auto shown = terminal_ledger(first_case_alone(), {width, false, true});
    for (const auto& line : lines_of(shown)) EXPECT_LE(width_of(line), static_cast<std::size_t>(width)) << line;
    for (const char* part : {"│  └─ aoti", "└─ openvino", "generated", "guards", "differs in",
                             "-6.97 ms (-8.07 to -5.87)", "1.23 (1.19–1.27)", "inconclusive", "Roofline:", "24.0 ms"})
      EXPECT_THAT(shown, HasSubstr(part)) << width;
  }
}

TEST(report_certificate, shows_every_line_of_one_level_or_says_that_there_is_none) {
  const auto shown = terminal_certificate(example(), {}, "onnxruntime");
  EXPECT_THAT(shown, HasSubstr("weights read back"));
  EXPECT_THAT(shown, HasSubstr("not checked"));
  EXPECT_THAT(shown, HasSubstr("first difference at layer1.0.bn1"));
  EXPECT_THAT(shown, Not(HasSubstr("openvino")));
  EXPECT_THAT(terminal_certificate(example(), {}, "nosuch"), HasSubstr("no level named nosuch"));
}

TEST(report_csv, has_a_line_for_each_case_and_level_and_empty_fields_for_unknowns) {
  const auto lines = lines_of(csv(example()));
  ASSERT_EQ(lines.size(), 1U + 23U);
  const auto commas = [](const std::string& line) { return std::count(line.begin(), line.end(), ','); };
  EXPECT_THAT(lines[0], HasSubstr("end_to_end_ms_estimate,"));
  EXPECT_EQ(commas(lines[1]), commas(lines[0])) << "the example's first row has no quoted comma but in `repeat`";
  EXPECT_THAT(csv(example()), Not(HasSubstr("null,")));
}

TEST(report_markdown, escapes_names_and_shows_levels_ledger_and_warnings) {
  auto run = example();
  run.cases[0].rows[1].level = "a|b<script>";
  const auto shown = markdown(run);
  EXPECT_THAT(shown, HasSubstr("a\\|b\\<script\\>"));
  EXPECT_THAT(shown, HasSubstr("### Ledger"));
  EXPECT_THAT(shown, HasSubstr("W003"));
  EXPECT_THAT(shown, HasSubstr("| compile | out of memory | its limit"));
}

// Of a state, a verdict or a kind, of which no other text can be read.
bool is_name(const std::string& text) {
  State state{};
  analysis::RatioVerdict ratio{};
  analysis::HeadlineVerdict headline{};
  analysis::EdgeKind kind{};
  return text == "equal" || from_string(text, state) || from_string(text, ratio) || from_string(text, headline) ||
         from_string(text, kind);
}

TEST(report_html, escapes_every_string_of_the_result_wherever_it_stands) {
  const Scratch scratch;
  const auto plotly = scratch.file("plotly.min.js", "var Plotly = '</script>';");
  const std::string evil = "<img src=x onerror=alert(1)>\"'&";
  // Every text in the result, the paths of rows included, is replaced but for names: what is not escaped shows.
  auto run = analysis::to_json(example());
  const auto places = run.flatten();
  for (const auto& [place, value] : places.items())
    if (value.is_string() && !is_name(value)) run[Json::json_pointer(place)] = evil;
  const auto page = html({analysis::result_from(run)}, plotly).value();
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, HasSubstr("&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;"));
  EXPECT_EQ(std::count(page.begin(), page.end(), '\x01'), 0);
  std::size_t scripts = 0;
  for (std::size_t at = 0; (at = page.find("</script>", at)) != std::string::npos; ++at) ++scripts;
  EXPECT_EQ(scripts, 3U) << "data, plotly, report: nothing else may end a script";
}

TEST(report_html, shows_settings_as_words_and_no_number_twice) {
  const Scratch scratch;
  auto run = first_case_alone();
  auto& row = run.cases[0].rows[1];
  row.settings = {{"threads", 2},
                  {"graphs", 1},
                  {"inference_mode", true},
                  {"compile", {{"graph_breaks", Json::array()}, {"graphs", 1}, {"guards", 216}, {"guard_us", 4911}}}};
  row.facts = {{"graphs", 3}, {"guards", 648}, {"guard_us", 138}};
  const auto page = html({run}, scratch.file("plotly.min.js", "var Plotly;")).value();
  EXPECT_THAT(page, HasSubstr("inference mode yes, threads 2; 3 graphs; 648 guards, 138 us a call"));
  EXPECT_THAT(page, HasSubstr("<caption><span>Warnings of this run"));
}

TEST(report_html, refuses_without_a_run_or_without_plotly) {
  EXPECT_FALSE(html({}, "/nonexistent").has_value());
  const auto missing = html({example()}, "/nonexistent/plotly.min.js");
  ASSERT_FALSE(missing.has_value());
  EXPECT_THAT(missing.error().what, HasSubstr("/nonexistent/plotly.min.js"));
}

TEST(report_file, refuses_what_is_not_a_result_and_says_what_it_read) {
  const Scratch scratch;
  EXPECT_THAT(read_results(scratch.file("a.json", "{")).error().what, HasSubstr("is not JSON"));
  EXPECT_THAT(read_results(scratch.file("b.json", R"({"schema":"strata.run/9"})")).error().what,
              HasSubstr("strata.run/9"));
  EXPECT_THAT(read_results(scratch.file("c.json", "[]")).error().what, HasSubstr("no run"));
  EXPECT_EQ(read_results(scratch.path / "none.json").error().exit, Exit::usage);
  EXPECT_THAT(render({example()}, "xml", "", {}).error().hint, HasSubstr("html"));
}

TEST(report_file, leaves_no_half_report_when_it_cannot_write) {
  const Scratch scratch;
  EXPECT_TRUE(write_whole(scratch.path / "out.txt", "whole").has_value());
  EXPECT_FALSE(write_whole("/dev/full", "whole").has_value());
  EXPECT_FALSE(write_whole("/proc/none/out.txt", "whole").has_value());
  EXPECT_EQ(std::distance(fs::directory_iterator(scratch.path), fs::directory_iterator()), 1);  // out.txt
}

TEST(report_file, is_refused_before_any_work_where_it_cannot_be_and_no_folder_is_made_for_it) {
  const Scratch scratch;
  const auto missing = check_writable(scratch.path / "new" / "out.txt", "-o");
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().exit, Exit::usage);
  EXPECT_THAT(missing.error().what, HasSubstr("there is no folder"));
  EXPECT_FALSE(write_whole(scratch.path / "new" / "out.txt", "whole").has_value());
  EXPECT_FALSE(fs::exists(scratch.path / "new"));
  EXPECT_FALSE(check_writable(scratch.path, "-o").has_value());
  EXPECT_TRUE(check_writable(scratch.path / "out.txt", "-o").has_value());
  EXPECT_TRUE(check_writable("/dev/full", "-o").has_value()) << "a device is written to";
}

}  // namespace
}  // namespace strata::report
