create database {copy} template {template}{strategy}
