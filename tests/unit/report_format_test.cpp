// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/format.hpp"
#include "report/render/html_text.hpp"
#include "report/table.hpp"

namespace strata::report {
namespace {

TEST(report_format, writes_times_with_three_digits_and_a_unit_that_fits) {
  EXPECT_EQ(duration(0.0921), "92.1 us");
  EXPECT_EQ(duration(36.94), "36.9 ms");
  EXPECT_EQ(duration(1500), "1.50 s");
  EXPECT_EQ(duration(0.00025), "250 ns");
  EXPECT_EQ(duration(7.2e6), "120 min");
  EXPECT_EQ(duration(0), "0 ms");
}

TEST(report_format, never_writes_a_thousand_of_a_unit_that_has_a_next_one) {
  EXPECT_EQ(duration(0.9996), "1.00 ms");
  EXPECT_EQ(duration(999.7), "1.00 s");
  EXPECT_EQ(duration(9.996), "10.0 ms");
  EXPECT_EQ(size(999'700'000), "1.00 GB");
}

TEST(report_format, writes_a_change_and_its_interval_in_one_unit) {
  EXPECT_EQ(duration_change(-0.5, -1.6, 0.6), "-0.50 ms (-1.60 to +0.60)");
  EXPECT_EQ(duration_change(0.25, std::nullopt, std::nullopt), "+250 us");
}

TEST(report_format, writes_ratios_percentages_and_counts_as_people_do) {
  EXPECT_EQ(ratio(1.418), "1.42");
  EXPECT_EQ(ratio(0.001), "<0.01");
  EXPECT_EQ(ratio(18234.4), "18,234");
  EXPECT_EQ(percent(5.5), "5.5%");
  EXPECT_EQ(percent(3.0), "3%");
  EXPECT_EQ(percent(34.826), "34.83%");
  EXPECT_EQ(count(1128), "1,128");
  EXPECT_EQ(count(25557032), "25.6 million");
  EXPECT_EQ(count(-0.2), "0");
  EXPECT_EQ(size(310e6), "310 MB");
  EXPECT_EQ(size(12), "12 B");
}

TEST(report_format, takes_control_characters_out_of_names) {
  EXPECT_EQ(printable("a\x1b[31mb\x7f"), "a?[31mb?");
  EXPECT_EQ(printable("a\nb\tc"), "a b c");
  EXPECT_EQ(printable("\xC2\x9B"
                      "31m"),
            "?31m");
  EXPECT_EQ(printable("größe – 5"), "größe – 5");
}

TEST(report_format, wraps_at_spaces_and_keeps_a_number_with_its_unit) {
  EXPECT_EQ(wrap("it takes 37.2 ms, once", 13), (std::vector<std::string>{"it takes", "37.2 ms, once"}));
  EXPECT_EQ(wrap("ab cd ef", 5, 2), (std::vector<std::string>{"ab cd", "  ef"}));
  EXPECT_EQ(wrap("unbreakable", 3), (std::vector<std::string>{"unbreakable"}));
}

TEST(report_format, gives_the_first_sentence_of_a_reason_whole) {
  const std::string operations = "no operation gru (gru, rnn.py:11), lstm (lstm, rnn.py:10)";
  EXPECT_EQ(first_sentence(operations), operations);
  EXPECT_EQ(first_sentence("torch.export: the branch at model.py:41 depends on data. Remove it.\nFrom here"),
            "torch.export: the branch at model.py:41 depends on data");
  EXPECT_EQ(first_sentence("one line\nand another"), "one line");
  EXPECT_EQ(first_sentence("\n  Unknown builtin op: a::b.\nCould not find"), "Unknown builtin op: a::b.");
  EXPECT_EQ(first_sentence(" \n"), "");
  EXPECT_EQ(first_sentence(""), "");
}

TEST(report_format, says_so_where_no_screen_has_room_for_a_sentence) {
  std::string clauses = "a first clause", words = "word";
  for (int i = 0; i < 60; ++i) {
    clauses += "; and one more";
    words += " and words";
  }
  EXPECT_LE(first_sentence(clauses).size(), 320U);
  EXPECT_TRUE(first_sentence(clauses).ends_with("and one more")) << "a clause is whole";
  EXPECT_TRUE(first_sentence(words).ends_with(" ..."));
}

TEST(report_table, aligns_numbers_to_the_right_and_leaves_no_trailing_space) {
  EXPECT_EQ(table({"level", numbers("time")}, {{"eager", "37.2 ms"}, {"é", "1 s"}}, Format::text),
            "level     time\n"
            "eager  37.2 ms\n"
            "é          1 s\n");
}

TEST(report_table, quotes_csv_fields_as_rfc_4180_wants) {
  EXPECT_EQ(table({"a", "b"}, {{"x,y", "say \"hi\"\nthere"}, {"plain"}}, Format::csv),
            "a,b\n\"x,y\",\"say \"\"hi\"\"\nthere\"\nplain,\n");
}

TEST(report_table, a_csv_cell_is_never_a_formula_and_numbers_stay_numbers) {
  for (const char* formula : {"=1+2", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "-1.2.3", "=-1"})
    EXPECT_EQ(csv_field(formula), std::string("'") + formula) << formula;
  for (const char* number : {"-1.5", "+2", "-3e-07", "0", "-0.25", "-", "eager", "1-2", "a=b", ""})
    EXPECT_EQ(csv_field(number), number) << number;
  EXPECT_EQ(csv_field("=HYPERLINK(\"x\",\"y\")"), "\"'=HYPERLINK(\"\"x\"\",\"\"y\"\")\"");
}

TEST(report_table, a_csv_cell_moves_no_terminal) {
  EXPECT_EQ(csv_field("a\x1b]0;hit\x07z"), "a?]0;hit?z");
  EXPECT_EQ(csv_field("a\rb"), "a?b");
}

TEST(report_table, writes_json_that_reads_back_even_from_broken_utf8) {
  const auto parsed = nlohmann::json::parse(table({"name"}, {{"a\"b"}, {"\xff"}}, Format::json));
  EXPECT_EQ(parsed[0]["name"], "a\"b");
  EXPECT_EQ(parsed.size(), 2U);
}

TEST(report_table, escapes_what_markdown_would_read_as_markup) {
  EXPECT_EQ(table({"n"}, {{"a|b <i> *c*"}}, Format::md), "| n |\n|---|\n| a\\|b \\<i\\> \\*c\\* |\n");
}

TEST(report_table, aligns_columns_in_markdown_as_they_are_declared) {
  EXPECT_EQ(table({"shape", numbers("time")}, {{"3x224x224", "36.9 ms"}, {"2.15.0"}}, Format::md),
            "| shape | time |\n|---|---:|\n| 3x224x224 | 36.9 ms |\n| 2.15.0 | – |\n");
}

TEST(report_table, knows_its_formats_by_name) {
  EXPECT_EQ(format_from("md"), Format::md);
  EXPECT_EQ(format_from("xml"), std::nullopt);
}

TEST(report_html, escapes_text_and_data_so_that_no_name_becomes_markup) {
  EXPECT_EQ(document::escape_html("<img src=x onerror=alert(1)>\"'&\x01"),
            "&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;");
  const nlohmann::json value{{"n", "</script><!-- \xE2\x80\xA8 &"}};
  const auto data = document::script_json(value);
  EXPECT_EQ(data.find_first_of("<>&"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(data), value);
  EXPECT_EQ(document::script_text("a='</script>'"), "a='<\\/script>'");
}

}  // namespace
}  // namespace strata::report
