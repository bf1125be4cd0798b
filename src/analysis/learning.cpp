// SPDX-License-Identifier: Apache-2.0
#include "analysis/learning.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

namespace strata::analysis {

std::optional<Spread> spread_of(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const double count = static_cast<double>(values.size());
  return Spread{.mean = std::accumulate(values.begin(), values.end(), 0.0) / count,
                .low = *low,
                .high = *high,
                .count = static_cast<int>(values.size())};
}

Learning::Learning(const std::vector<store::Series>& series) {
  for (const auto& curve : series) {
    if (curve.axis != "epoch") continue;
    for (std::size_t i = 0; i < curve.positions.size(); ++i)
      if (std::isfinite(curve.values[i]))
        values_[curve.name][curve.repeat][static_cast<int>(curve.positions[i])] = curve.values[i];
  }
}

const std::map<int, double>* Learning::of(const std::string& name, int repeat) const {
  const auto series = values_.find(name);
  if (series == values_.end()) return nullptr;
  const auto it = series->second.find(repeat);
  return it == series->second.end() ? nullptr : &it->second;
}

const std::map<int, double>& Learning::series(const std::string& name, int repeat) const {
  static const std::map<int, double> none;
  const auto* epochs = of(name, repeat);
  return epochs ? *epochs : none;
}

std::vector<int> Learning::repeats() const {
  std::set<int> all;
  for (const auto& [name, repeats] : values_)
    for (const auto& [repeat, epochs] : repeats) all.insert(repeat);
  return {all.begin(), all.end()};
}

int Learning::epochs() const {
  int last = 0;
  for (const auto& [name, repeats] : values_)
    for (const auto& [repeat, epochs] : repeats)
      if (!epochs.empty()) last = std::max(last, epochs.rbegin()->first);
  return last;
}

std::optional<Spread> Learning::at(const std::string& name, int epoch) const {
  std::vector<double> samples;
  for (const int repeat : repeats())
    if (const auto* epochs = of(name, repeat))
      if (const auto value = epochs->find(epoch); value != epochs->end()) samples.push_back(value->second);
  return spread_of(samples);
}

std::optional<double> Learning::mean(const std::string& name, int repeat) const {
  const auto* epochs = of(name, repeat);
  if (!epochs || epochs->empty()) return std::nullopt;
  double sum = 0;
  for (const auto& [epoch, value] : *epochs) sum += value;
  return sum / static_cast<double>(epochs->size());
}

std::optional<Spread> Learning::mean_of_all(const std::string& name) const {
  std::vector<double> samples;
  for (const int repeat : repeats())
    if (const auto value = mean(name, repeat)) samples.push_back(*value);
  return spread_of(samples);
}

std::optional<Spread> Learning::last(const std::string& name) const {
  std::vector<double> samples;
  for (const int repeat : repeats())
    if (const auto value = last(name, repeat)) samples.push_back(*value);
  return spread_of(samples);
}

std::optional<double> Learning::last(const std::string& name, int repeat) const {
  const auto* epochs = of(name, repeat);
  return epochs && !epochs->empty() ? std::optional(epochs->rbegin()->second) : std::nullopt;
}

std::map<int, double> Learning::ends(const std::string& name) const {
  std::map<int, double> result;
  const int last = epochs();
  for (const int repeat : repeats())
    if (const auto* epochs = of(name, repeat))
      if (const auto value = epochs->find(last); value != epochs->end()) result[repeat] = value->second;
  return result;
}

std::optional<Learning::Best> Learning::best(const std::string& name) const {
  std::vector<double> values, when;
  for (const int repeat : repeats()) {
    const auto* epochs = of(name, repeat);
    if (!epochs || epochs->empty()) continue;
    const auto highest = std::max_element(epochs->begin(), epochs->end(),
                                          [](const auto& a, const auto& b) { return a.second < b.second; });
    values.push_back(highest->second);
    when.push_back(highest->first);
  }
  const auto value = spread_of(values), epoch = spread_of(when);
  if (!value || !epoch) return std::nullopt;
  return Best{*value, *epoch};
}

std::optional<double> Learning::seconds_of(int repeat, int epoch) const {
  const auto* epochs = of("epoch_seconds", repeat);
  if (!epochs || !epochs->contains(epoch)) return std::nullopt;
  double sum = 0;
  for (const auto& [number, value] : *epochs)
    if (number <= epoch) sum += value;
  return sum;
}

std::optional<double> Learning::seconds_until(int epoch) const {
  std::vector<double> samples;
  for (const int repeat : repeats())
    if (const auto seconds = seconds_of(repeat, epoch)) samples.push_back(*seconds);
  const auto spread = spread_of(samples);
  return spread ? std::optional(spread->mean) : std::nullopt;
}

Learning::Reached Learning::reached(const std::string& name, double target) const {
  Reached result;
  std::vector<double> when, seconds;
  for (const int repeat : repeats()) {
    const auto* epochs = of(name, repeat);
    if (!epochs) continue;
    const auto first =
        std::find_if(epochs->begin(), epochs->end(), [&](const auto& epoch) { return epoch.second >= target; });
    if (first == epochs->end()) {
      ++result.never;
      continue;
    }
    when.push_back(first->first);
    if (const auto spent = seconds_of(repeat, first->first)) seconds.push_back(*spent);
  }
  result.epoch = spread_of(when);
  result.seconds = spread_of(seconds);
  return result;
}

std::vector<double> Learning::epochs_until(const std::string& name, double target) const {
  const auto ended = ends(name);
  std::vector<double> result;
  for (const int repeat : repeats()) {
    const auto* epochs = of(name, repeat);
    const auto first =
        epochs ? std::find_if(epochs->begin(), epochs->end(), [&](const auto& epoch) { return epoch.second >= target; })
               : std::map<int, double>::const_iterator();
    if (epochs && first != epochs->end())
      result.push_back(first->first);
    else if (ended.contains(repeat) || diverged(repeat))
      result.push_back(std::numeric_limits<double>::infinity());
  }
  return result;
}

int Learning::diverged() const {
  const auto series = values_.find("diverged_at");
  return series == values_.end() ? 0 : static_cast<int>(series->second.size());
}

std::optional<Learning::Diverged> Learning::diverged(int repeat) const {
  const auto* epochs = of("diverged_at", repeat);
  if (!epochs || epochs->empty()) return std::nullopt;
  return Diverged{epochs->begin()->first, static_cast<int>(epochs->begin()->second)};
}

std::optional<Spread> speedup(const Learning& level, const Learning& reference, const std::string& by) {
  std::vector<double> ratios;
  for (const int repeat : level.repeats()) {
    const auto own = level.mean(by, repeat), other = reference.mean(by, repeat);
    if (own && other && *own > 0) ratios.push_back(*other / *own);
  }
  return spread_of(ratios);
}

}  // namespace strata::analysis
