"""The paper's experiment: data, 21 orders, table, figures."""
