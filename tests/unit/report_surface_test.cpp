// SPDX-License-Identifier: Apache-2.0
// Surfaces, alternatives and named points of a document in every format.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/render/render.hpp"
#include "unit/example_document.hpp"
#include "unit/rendered.hpp"

namespace strata::document {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(DocumentSurface, is_a_table_of_its_fields_in_text_and_markdown_and_details_are_left_out_there) {
  const auto text = terminal_of(example_document(), 100);
  EXPECT_THAT(text, HasSubstr("Time of a sample (mode infer)\n"));
  EXPECT_THAT(text, testing::ContainsRegex("  32, compile +\\(4.0 ms\\) +2.50 ms"));
  EXPECT_THAT(text, testing::ContainsRegex("  128, eager +36.0 ms +18.0 ms +out of memory\n"));
  EXPECT_THAT(text, Not(HasSubstr("mode train")));
  const auto markdown = render_markdown(example_document());
  EXPECT_THAT(markdown,
              HasSubstr("| size / batch | 1 | 8 | 64 |\n|---|---:|---:|---:|\n| 32, eager | 4.00 ms | 2.00 ms "));
  EXPECT_THAT(markdown, HasSubstr(" 18.0 ms | out of memory |\n"));
  EXPECT_THAT(markdown, Not(HasSubstr("mode train")));
}

TEST(DocumentSurface, has_every_field_with_interval_and_outcome_in_json_and_csv) {
  const auto json = nlohmann::json::parse(render_json(example_document()));
  const auto& surface = json["sections"][3]["items"][1];
  EXPECT_EQ(surface["kind"], "surface");
  EXPECT_EQ(surface["choices"], nlohmann::json::parse(R"([{"title": "mode", "option": "train"}])"));
  const auto& fields = surface["layers"][0]["fields"];
  EXPECT_EQ(fields[0][1]["value"], 0.002);
  EXPECT_EQ(fields[0][1]["low"], 0.97 * 0.002);
  EXPECT_EQ(fields[2][2], nlohmann::json::parse(R"({"value": null, "outcome": "out of memory"})"));
  const auto csv = render_csv(example_document());
  EXPECT_THAT(csv, HasSubstr("\n\ntable,layer,row,column,value,low,high,outcome\ntrain,eager,32,1,0.004,"));
  EXPECT_THAT(csv, HasSubstr("\ntrain,eager,128,64,,,,out of memory\n"));
}

TEST(DocumentSurface, alternatives_stand_in_one_box_of_a_page_and_other_figures_outside_of_it) {
  const auto page = page_of(example_document());
  EXPECT_EQ(times(page, R"(<div class="family">)"), 1u);
  const auto box = page.find(R"(<div class="family">)"), end = page.find("</section>", box);
  EXPECT_EQ(times(page.substr(box, end - box), R"(<div class="canvas")"), 2u);
  auto document = document_of(example_surface("a", "infer", false));
  auto& items = document.sections[0].items;
  items.push_back(example_heat_map());
  items.push_back(example_surface("b", "train", false));
  EXPECT_EQ(times(page_of(document), R"(<div class="family">)"), 2u);
  std::get<Surface>(items[0]).choices[0].title = "threads";
  items.erase(items.begin() + 1);
  EXPECT_EQ(times(page_of(document), R"(<div class="family">)"), 2u) << "other titles are no alternatives";
}

TEST(DocumentFigure, points_with_names_are_told_one_by_one_and_not_as_a_curve) {
  Panel panel{
      .title = "size 8",
      .x = {.title = "time"},
      .y = {.title = "memory"},
      .lines = {{.name = "eager", .x = {2, 1}, .y = {5, 6}, .labels = {"batch 1", "batch 8"}, .marks_only = true}}};
  const auto document = document_of(Figure{.id = "f", .title = "Choices", .panels = {panel}});
  EXPECT_THAT(terminal_of(document), HasSubstr("Choices\n  2 points of 1 line, drawn in the HTML report\n"));
  EXPECT_THAT(render_markdown(document), HasSubstr("2 points of 1 line, drawn in the HTML report."));
  EXPECT_THAT(render_csv(document), HasSubstr("table,panel,line,x,y,low,high,point\nf,size 8,eager,2,5,,,batch 1\n"));
  EXPECT_THAT(page_of(document), HasSubstr("<td>batch 8</td>"));
  const auto json = nlohmann::json::parse(render_json(document));
  EXPECT_EQ(json["sections"][0]["items"][0]["panels"][0]["lines"][0]["labels"][1], "batch 8");
}

}  // namespace
}  // namespace strata::document
