# SPDX-License-Identifier: Apache-2.0
"""`strata pack`: strata with its levels as a folder for a machine without a network. __main__.py
gets the order from the driver, lay.py makes the folder, target.py runs it on the other side."""
